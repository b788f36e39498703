/** What a run can be told. */

import { writeFileSync } from 'node:fs';
import path from 'node:path';

import { AlhenaError } from './errors.js';

/** What the model may do without asking: read, edit files, everything, or read and plan. */
export type Approval = 'default' | 'auto-edit' | 'yolo' | 'plan' | 'auto_edit' | 'acceptEdits' | 'bypassPermissions';

/** Options of a run; all can be left out. */
export interface Options {
  /** Where to work; the current directory by default. */
  cwd?: string | undefined;
  /** The model; Gemini CLI's own choice by default. */
  model?: string | undefined;
  /** `default`, which is read only, when absent. */
  approval?: Approval | undefined;
  /** Run in a folder that is not trusted; `'settings'` loads the folder's own settings, too. */
  trust?: boolean | 'settings' | undefined;
  /** On, off, or an engine such as `docker`; what the user's settings say by default. */
  sandbox?: boolean | string | undefined;
  /** More directories that the model may use. */
  includeDirs?: readonly string[] | undefined;
  /** Tools that need no approval: a name, or `run_shell_command(PREFIX)`. */
  allowTools?: readonly string[] | undefined;
  /** Tools that the model does not get. */
  denyTools?: readonly string[] | undefined;
  /** Policy files of Gemini CLI. */
  policies?: readonly string[] | undefined;
  /** MCP servers by name, as in Gemini CLI's settings, or a JSON file with them. */
  mcpServers?: Readonly<Record<string, object>> | string | undefined;
  /** Instructions for the model beside the prompt. */
  systemPrompt?: string | undefined;
  /** Whether they come after the CLI's own, as when absent, or replace them. */
  systemPromptMode?: 'append' | 'replace' | undefined;
  /** Variables for `alhena` and Gemini CLI, beside those of this process. */
  env?: Readonly<Record<string, string | undefined>> | undefined;
  /** Go on with a session: its id, or `true` for the latest of the folder. */
  resume?: string | true | undefined;
  /** The id for a new session. */
  sessionId?: string | undefined;
  /**
   * Stop the run after this many milliseconds. It is then the only limit, unless the next two are given. `'none'` for no limit, also
   * where a file with defaults has one.
   */
  timeout?: number | 'none' | undefined;
  /** Stop the run if nothing comes within this time; 60 s if no `timeout` is given, `'none'` for no limit. */
  firstEventTimeout?: number | 'none' | undefined;
  /** Stop the run if it is silent for this long while no tool runs; 5 min if no `timeout` is given, `'none'` for no limit. */
  stallTimeout?: number | 'none' | undefined;
  /** How many turns the model may take. */
  maxTurns?: number | undefined;
  /** How many tokens the run may take. */
  maxTokens?: number | undefined;
  /** How many US dollars it may cost. */
  maxCost?: number | undefined;
  /** How many model calls it may make. */
  maxCalls?: number | undefined;
  /** How often a failing request to the API is tried. */
  maxAttempts?: number | undefined;
  /** The answer has to fit this JSON schema, or the one in this file; the outcome then has it as `data`. */
  schema?: object | string | undefined;
  /** How often the model may try again when its answer does not fit; 2 when absent. */
  schemaAttempts?: number | undefined;
  /** The Gemini CLI to run: a path, a command on PATH, or a version, which is fetched if it is not there. */
  gemini?: string | undefined;
  /** Use the scripted model on this machine instead of Gemini; a file is its scenario. */
  offline?: boolean | string | undefined;
  /** Keep everything that the CLI wrote in this directory, which must not exist, for `alhena parse`. */
  record?: string | undefined;
  /** More arguments for Gemini CLI itself. */
  extraArgs?: readonly string[] | undefined;
  /** Whether defaults in files (`alhena help config`) count; they do when absent. */
  useConfig?: boolean | undefined;
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
  add('timeout', limit(options.timeout));
  add('first-event-timeout', limit(options.firstEventTimeout ?? options.timeout));
  add('stall-timeout', limit(options.stallTimeout ?? options.timeout));
  // Absolute: they mean what they mean here, wherever `alhena` works.
  add('dir', absolute(options.cwd));
  add('model', options.model);
  if (options.trust) args.push(options.trust === 'settings' ? '--trust=settings' : '--trust');
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
  else add('resume', sessionId(options.resume));
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

const isObject = (value: unknown) => typeof value === 'object' && value !== null && !Array.isArray(value);

/** The variables for `alhena`. */
export function environment(options: { env?: Options['env'] }): NodeJS.ProcessEnv {
  return { ...process.env, ...options.env };
}

/** A session's id, which is never a path. */
export function sessionId(id: string | undefined): string | undefined {
  if (id !== undefined && !(typeof id === 'string' && /^[A-Za-z0-9_-]+$/.test(id))) {
    throw new AlhenaError('usage', `not the id of a session: ${JSON.stringify(id)}`, '`listSessions` gives them.');
  }
  return id;
}

function absolute(file: string | undefined): string | undefined {
  return file === undefined ? undefined : path.resolve(file);
}

function limit(value: number | 'none' | undefined): string | undefined {
  return value === 'none' ? value : time(value);
}

function time(milliseconds: number | undefined): string | undefined {
  if (milliseconds === undefined) return undefined;
  if (!(milliseconds > 0) || milliseconds === Infinity) {
    throw new AlhenaError('usage', `a time must be more than nothing, got: ${milliseconds}`);
  }
  return `${Math.max(1, Math.round(milliseconds))}ms`;
}
