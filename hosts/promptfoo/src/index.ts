/**
 * Gemini CLI as a provider of promptfoo, through `alhena`.
 *
 * `alhena` runs the CLI, decides whether it really succeeded, and leaves nothing behind when a call times out or is aborted.
 * What a call returns is printed by `alhena run --as promptfoo`; here are only the options, the cache and the process.
 */

import { mkdir } from 'node:fs/promises';
import path from 'node:path';

import { detect } from 'alhena';
import { environment, refused, runArguments, start, withScratch, type Finished } from 'alhena/adapter';

import { cachePlace } from './cache.js';
import { alhenaOptions, checked, named, resolved, unknownOptions, variables, type GeminiCliConfig, type GivenConfig } from './config.js';
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

/**
 * The id of a provider that promptfoo gave none. It is not the plan's `google:gemini-cli`, because promptfoo 0.123.1 takes that
 * for a model of Google AI Studio named `gemini-cli`; with the change in `upstream/`, promptfoo gives that id itself.
 */
const ID = 'alhena:gemini-cli';

/** Options that were warned of once are not again: promptfoo makes a provider for every use. */
const warned = new Set<string>();

export class GeminiCli {
  readonly config: GivenConfig;
  readonly #id: string;
  readonly #env: Record<string, string | undefined>;
  #project: Promise<string | undefined> | undefined;

  constructor(options: ProviderOptions = {}) {
    this.config = options.config ?? {};
    this.#env = options.env ?? {};
    this.#id = options.id || ID;
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
      const gemini = named(config) ?? (await (this.#project ??= this.#projectCli(config)));
      const place = await cachePlace(prompt, config, given, gemini, context);
      const known = await place?.get();
      if (known) return known;
      const response = await withScratch((scratch) => this.#run(prompt, config, given, gemini, scratch, callOptions?.abortSignal));
      if (response.error === undefined && !response.metadata.failure) await place?.set(response);
      return response;
    } catch (error) {
      return { error: `Gemini CLI error: ${error instanceof Error ? error.message : String(error)}` };
    }
  }

  async #run(
    prompt: string,
    config: GivenConfig,
    given: string | undefined,
    gemini: string | undefined,
    scratch: string,
    signal?: AbortSignal,
  ): Promise<Response> {
    if (signal?.aborted) throw new Error('The call was aborted before it began');
    const directory = given ?? path.join(scratch, 'work');
    if (!given) await mkdir(directory);
    const args = ['run', '--as=promptfoo', ...runArguments(alhenaOptions(config, directory, gemini), scratch), '-'];
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
      throw exited({ ...ended, stdout });
    }
  }

  /**
   * Finds the Gemini CLI in `node_modules` of the config file's directory or above, if that folder is trusted. `alhena` itself
   * looks from the working directory, which may be elsewhere.
   */
  async #projectCli(config: GivenConfig): Promise<string | undefined> {
    // If it fails, the run fails for the same reason and reports it.
    const found = await detect({ cwd: resolved(config, '.'), env: this.#env }).catch(() => null);
    return found?.place === 'project' ? found.path : undefined;
  }
}

function exited(ended: Finished): Error {
  const { message, hint } = refused(ended);
  const said = ended.stderr.trim() || !ended.stdout.trim() ? [message, hint].filter(Boolean).join('\n') : ended.stdout.trim();
  return new Error(`Exit code ${ended.exitCode}: ${said}`);
}

function warn(config: object, whose: 'provider' | 'prompt'): void {
  for (const text of unknownOptions(config as Record<string, unknown>, whose)) {
    if (!warned.has(text)) console.warn(text);
    warned.add(text);
  }
}
