/** What a run can be told. */

import { writeFileSync } from 'node:fs';
import path from 'node:path';

import { AlhenaError } from './errors.js';
import type { RunOptions } from './run-options.js';

export type { Approval } from './run-options.js';

/** Options of a run; all can be left out. */
export interface Options extends RunOptions {
  /** The `alhena` to run; by default it is looked for. */
  binary?: string | undefined;
}

/** The options of `alhena run`. What is too long or too private for a command line goes into files in `scratch`. */
export function runArguments(options: Options, scratch: string): string[] {
  check(options);
  const args = [`--approval=${options.approval ?? 'default'}`];
  const add = (name: string, value: string | number | undefined) => {
    if (value !== undefined) args.push(`--${name}=${value}`);
  };
  const each = (name: string, values: readonly string[] | undefined) => values?.forEach((value) => add(name, value));
  const file = (name: string, text: string) => {
    const place = path.join(scratch, name);
    writeFileSync(place, text, { mode: 0o600 });
    return place;
  };
  const timeout = limit('timeout', options.timeout);
  add('timeout', timeout);
  add('first-event-timeout', limit('firstEventTimeout', options.firstEventTimeout) ?? timeout);
  add('stall-timeout', limit('stallTimeout', options.stallTimeout) ?? timeout);
  // Absolute: they mean what they mean here, wherever `alhena` works.
  add('dir', absolute(options.cwd));
  add('model', options.model);
  args.push(...trustArguments(options.trust));
  add('sandbox', typeof options.sandbox === 'boolean' ? (options.sandbox ? 'on' : 'off') : options.sandbox);
  each('include-dir', options.includeDirs?.map((directory) => path.resolve(directory)));
  each('allow-tool', options.allowTools);
  each('deny-tool', options.denyTools);
  each('policy', options.policies?.map((policy) => path.resolve(policy)));
  if (typeof options.mcpServers === 'string') add('mcp-server', absolute(options.mcpServers));
  else if (options.mcpServers && Object.keys(options.mcpServers).length > 0) {
    add('mcp-server', file('mcp.json', JSON.stringify({ mcpServers: options.mcpServers })));
  }
  if (options.systemPrompt) {
    add('system-prompt-file', file('system-prompt.md', options.systemPrompt));
    add('system-prompt-mode', options.systemPromptMode);
  }
  if (options.resume === true) args.push('--resume');
  else add('resume', sessionId(options.resume, 'resume'));
  add('session-id', sessionId(options.sessionId));
  add('max-turns', options.maxTurns);
  add('max-tokens', options.maxTokens);
  add('max-cost', options.maxCost);
  add('max-calls', options.maxCalls);
  add('max-attempts', options.maxAttempts);
  if (typeof options.schema === 'string') add('schema', absolute(options.schema));
  else if (options.schema) add('schema', file('schema.json', JSON.stringify(options.schema)));
  add('schema-attempts', options.schemaAttempts);
  add('gemini', options.gemini);
  if (options.offline) args.push(options.offline === true ? '--offline' : `--offline=${path.resolve(options.offline)}`);
  add('record', absolute(options.record));
  if (options.useConfig === false) args.push('--no-config');
  return args;
}

const LISTS = ['includeDirs', 'allowTools', 'denyTools', 'policies', 'extraArgs'] as const;
const TEXTS = ['cwd', 'model', 'approval', 'systemPrompt', 'systemPromptMode', 'sessionId', 'gemini', 'record', 'binary'] as const;
const LIMITS = ['timeout', 'firstEventTimeout', 'stallTimeout'] as const;
const NUMBERS = ['maxTurns', 'maxTokens', 'maxCost', 'maxCalls', 'maxAttempts', 'schemaAttempts'] as const;

/** Programs without types get them wrong, and a text that is taken for a list is a list of letters. */
function check(options: Options): void {
  const fits = (names: readonly (keyof Options)[], wanted: string, fit: (value: unknown) => boolean) => {
    const wrong = names.find((name) => options[name] !== undefined && !fit(options[name]));
    if (wrong) throw new AlhenaError('usage', `${wrong} must be ${wanted}, got: ${JSON.stringify(options[wrong])}`);
  };
  if (typeof options !== 'object' || options === null) throw new AlhenaError('usage', 'the options must be an object');
  fits(LISTS, 'a list of strings', (value) => Array.isArray(value) && value.every((item) => typeof item === 'string'));
  fits(TEXTS, 'a string', (value) => typeof value === 'string');
  fits(NUMBERS, 'a number', (value) => typeof value === 'number');
  fits(LIMITS, "a number or 'none'", (value) => typeof value === 'number' || value === 'none');
  fits(['resume'], 'the id of a session, or true', (value) => typeof value === 'string' || value === true);
  fits(['schema'], 'a JSON schema or a file', (value) => typeof value === 'string' || isObject(value));
  fits(['mcpServers'], 'an object of servers or a file', (value) => typeof value === 'string' || isObject(value));
}

/** The option for a folder that is not trusted. A typo must not trust it. */
export function trustArguments(trust: Options['trust'] | null): string[] {
  if (trust === undefined || trust === null || trust === false) return [];
  if (trust === true) return ['--trust'];
  if (trust === 'settings') return ['--trust=settings'];
  throw new AlhenaError('usage', `trust must be a boolean or 'settings', got: ${JSON.stringify(trust)}`);
}

const isObject = (value: unknown) => typeof value === 'object' && value !== null && !Array.isArray(value);

/** The variables for `alhena`. */
export function environment(options: { env?: Options['env'] }): NodeJS.ProcessEnv {
  return { ...process.env, ...options.env };
}

/** A session's id, which is never a path. */
export function sessionId(id: string | undefined, option = 'sessionId'): string | undefined {
  if (id !== undefined && !(typeof id === 'string' && /^[A-Za-z0-9_-]+$/.test(id))) {
    throw new AlhenaError('usage', `${option} must be the id of a session, got: ${JSON.stringify(id)}`, '`listSessions` gives them.');
  }
  return id;
}

function absolute(file: string | undefined): string | undefined {
  return file === undefined ? undefined : path.resolve(file);
}

function limit(option: string, milliseconds: number | 'none' | undefined): string | undefined {
  if (milliseconds === undefined || milliseconds === 'none') return milliseconds;
  if (!(milliseconds > 0) || milliseconds === Infinity) {
    throw new AlhenaError('usage', `${option} must be more than 0, got: ${milliseconds}`);
  }
  return `${Math.max(1, Math.round(milliseconds))}ms`;
}
