/**
 * Gemini CLI as a provider of promptfoo, through `alhena`.
 *
 * `alhena` runs the CLI, decides whether it really succeeded, and leaves nothing behind when a call times out or is aborted.
 * What a call returns is printed by `alhena run --as promptfoo`; here are only the options, the cache and the process.
 */

import { mkdir } from 'node:fs/promises';
import path from 'node:path';

import { CommandFailedError } from 'alhena';
import { environment, refused, runArguments, start, withScratch } from 'alhena/adapter';

import { cachePlace } from './cache.js';
import { alhenaOptions, checked, resolved, unknownOptions, variables, type GeminiCliConfig, type GivenConfig } from './config.js';
import type { ProviderResponse, TokenUsage } from './provider-response.js';

export type { GeminiCliConfig } from './config.js';
export type { ProviderResponse } from './provider-response.js';

/** What a call gives: an answer or an error, and what happened on the way. */
export type Response = Omit<ProviderResponse, 'tokenUsage'> & {
  tokenUsage?: Pick<TokenUsage, 'total'> & Partial<TokenUsage> & { numRequests?: number };
  cached?: boolean;
};

/** What promptfoo hands to a call, as far as it is used here. */
export interface CallContext {
  prompt?: { config?: unknown };
  bustCache?: boolean;
  repeatIndex?: number;
  getCache?(): CacheLike | Promise<CacheLike>;
}
interface CacheLike {
  get(key: string): Promise<unknown>;
  set(key: string, value: string): Promise<unknown>;
}

export interface ProviderOptions {
  id?: string;
  config?: GeminiCliConfig;
  env?: Record<string, string | undefined>;
}

/** Options that were warned of once are not again: promptfoo makes a provider for every use. */
const warned = new Set<string>();

export class GeminiCli {
  readonly config: GivenConfig;
  readonly #id: string;
  readonly #env: Record<string, string | undefined>;

  constructor(options: ProviderOptions = {}) {
    this.config = options.config ?? {};
    this.#env = options.env ?? {};
    // Promptfoo gives the path by which it found the class as an id; what it is does not depend on that.
    this.#id = !options.id || /^(package:|file:)/.test(options.id) ? 'google:gemini-cli' : options.id;
    warn(this.config, 'provider');
  }

  id(): string {
    return this.#id;
  }

  toString(): string {
    return '[Google Gemini CLI Provider]';
  }

  /** Never rejects: whatever goes wrong is an `error`. */
  async callApi(prompt: string, context?: CallContext, callOptions?: { abortSignal?: AbortSignal }): Promise<Response | { error: string }> {
    try {
      const own = (context?.prompt?.config ?? {}) as Record<string, unknown>;
      warn(own, 'prompt');
      const config = checked({ ...this.config, ...own });
      const given = config.working_dir === undefined ? undefined : resolved(config, config.working_dir);
      const place = await cachePlace(prompt, config, given, context);
      const known = await place?.get();
      if (known) return known;
      const response = await withScratch((scratch) => this.#run(prompt, config, given, scratch, callOptions?.abortSignal));
      if (response.error === undefined) await place?.set(response);
      return response;
    } catch (error) {
      return { error: `Gemini CLI error: ${error instanceof Error ? error.message : String(error)}` };
    }
  }

  async #run(prompt: string, config: GivenConfig, given: string | undefined, scratch: string, signal?: AbortSignal): Promise<Response> {
    if (signal?.aborted) throw new Error('The call was aborted before it began');
    const directory = given ?? path.join(scratch, 'work');
    if (!given) await mkdir(directory);
    const args = ['run', '--as=promptfoo', ...runArguments(alhenaOptions(config, directory), scratch), '-'];
    let stdout = '';
    const running = start({
      args,
      input: prompt,
      env: environment({ env: { ...this.#env, ...variables(config) } }),
      signal,
      onStdout: (chunk) => {
        stdout += chunk;
      },
    });
    const ended = await running.finished;
    try {
      return JSON.parse(stdout) as Response;
    } catch {
      throw exited(ended.exitCode, refused(ended));
    }
  }
}

function exited(code: number, error: CommandFailedError): Error {
  return new Error(`Exit code ${code}: ${error.message}${error.hint && `\n${error.hint}`}`);
}

function warn(config: object, whose: 'provider' | 'prompt'): void {
  for (const text of unknownOptions(config as Record<string, unknown>, whose)) {
    if (!warned.has(text)) console.warn(text);
    warned.add(text);
  }
}
