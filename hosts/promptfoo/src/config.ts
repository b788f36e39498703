/** The provider's options: their names, checks, and what they are to `alhena`. */

import path from 'node:path';

import type { Approval, Options } from 'alhena';

export interface GeminiCliConfig {
  /** `GEMINI_API_KEY`, `GOOGLE_CLOUD_PROJECT` and `GOOGLE_GENAI_USE_VERTEXAI` for the CLI. */
  apiKey?: string;
  googleCloudProject?: string;
  useVertexAI?: boolean;
  model?: string;
  /** Where to work, relative to the config file. Without it each call gets an empty directory of its own. */
  working_dir?: string;
  include_directories?: string[];
  approval_mode?: 'suggest' | 'auto_edit' | 'full_auto' | 'default' | 'yolo' | 'plan';
  yolo?: boolean;
  sandbox?: string | boolean;
  /** A settings file with MCP servers, relative to the config file. */
  mcp_settings_path?: string;
  mcp_servers?: Record<string, object>;
  disable_tools?: string[];
  allow_tools?: string[];
  /** 120000 when absent. */
  timeout_ms?: number;
  session_id?: string;
  resume?: string;
  system_prompt?: string;
  max_turns?: number;
  /** The answer has to fit this JSON schema, or the one in this file; `output` is then the value. */
  schema?: object | string;
  /** False: never cache; true: cache also with MCP servers. */
  cache?: boolean;
  /** The Gemini CLI to run: a path, relative to the config file, a command on PATH, or a version. */
  gemini_path?: string;
}

/** What promptfoo adds: the directory of the config file. */
export type GivenConfig = GeminiCliConfig & { basePath?: string };

const DEFAULT_TIMEOUT_MS = 120000;

type Kind = 'text' | 'switch' | 'list' | 'number' | 'other';
const KINDS: Record<keyof GeminiCliConfig, Kind> = {
  apiKey: 'text', googleCloudProject: 'text', useVertexAI: 'switch', model: 'text', working_dir: 'text', include_directories: 'list',
  approval_mode: 'other', yolo: 'switch', sandbox: 'other', mcp_settings_path: 'text', mcp_servers: 'other', disable_tools: 'list',
  allow_tools: 'list', timeout_ms: 'number', session_id: 'text', resume: 'text', system_prompt: 'text', max_turns: 'number', schema: 'other',
  cache: 'switch', gemini_path: 'text',
};
const WANTED: Record<Exclude<Kind, 'other'>, { words: string; fits(value: unknown): boolean }> = {
  text: { words: 'a string', fits: (value) => typeof value === 'string' },
  switch: { words: 'true or false', fits: (value) => typeof value === 'boolean' },
  list: { words: 'a list of strings', fits: (value) => Array.isArray(value) && value.every((item) => typeof item === 'string') },
  number: { words: 'a number > 0', fits: (value) => Number(value) > 0 },
};
const APPROVAL_MODES: Record<string, Approval> = {
  suggest: 'default', auto_edit: 'auto-edit', full_auto: 'yolo', default: 'default', yolo: 'yolo', plan: 'plan',
};

/** The options, or an error that says which one is wrong. */
export function checked(config: Record<string, unknown>): GivenConfig {
  const wrong = (key: string, wanted: string) => new Error(`${key} must be ${wanted}, got: ${JSON.stringify(config[key])}`);
  for (const [key, kind] of Object.entries(KINDS)) {
    const value = config[key];
    if (kind !== 'other' && value !== undefined && value !== null && !WANTED[kind].fits(value)) throw wrong(key, WANTED[kind].words);
  }
  const mode = config['approval_mode'];
  if (mode !== undefined && mode !== null && !(typeof mode === 'string' && Object.hasOwn(APPROVAL_MODES, mode))) {
    throw wrong('approval_mode', 'one of suggest, auto_edit, full_auto');
  }
  return Object.fromEntries(Object.entries(config).filter(([, value]) => value !== null)) as GivenConfig;
}

/**
 * What to say of options that do not exist: each with the one that was probably meant. In a prompt's own config promptfoo puts
 * things of its own, such as `prefix`; there only what looks like an option of ours is told.
 */
export function unknownOptions(config: Record<string, unknown>, whose: 'provider' | 'prompt' = 'provider'): string[] {
  const unknown = Object.keys(config).filter((key) => !Object.hasOwn(KINDS, key) && key !== 'basePath');
  return unknown.flatMap((key) => {
    const [nearest] = Object.keys(KINDS)
      .map((name) => ({ name, distance: distance(plain(key), plain(name)) }))
      .sort((a, b) => a.distance - b.distance);
    const meant = nearest && nearest.distance <= Math.max(2, key.length / 3) ? `; did you mean ${nearest.name}?` : '';
    return meant || whose === 'provider' ? [`Gemini CLI has no option ${JSON.stringify(key)}${meant}`] : [];
  });
}

const plain = (name: string) => name.toLowerCase().replace(/[^a-z]/g, '');

/** How many letters differ (Levenshtein). */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (const [i, letter] of [...a].entries()) {
    let diagonal = row[0] ?? 0;
    row = row.reduce<number[]>((next, above, j) => {
      if (j === 0) return [i + 1];
      const cost = Math.min(above + 1, (next[j - 1] ?? 0) + 1, diagonal + (letter === b[j - 1] ? 0 : 1));
      diagonal = above;
      return [...next, cost];
    }, []);
  }
  return row[b.length] ?? 0;
}

/** A path as the config file means it. */
export function resolved(config: GivenConfig, file: string): string {
  return path.resolve(config.basePath || '.', file);
}

export function timeoutOf(config: GivenConfig): number {
  return Number(config.timeout_ms ?? DEFAULT_TIMEOUT_MS);
}

/** Returns the `gemini` option of `alhena` for a `gemini_path`: what has a slash is a path as the config file means it. */
export function named(config: GivenConfig): string | undefined {
  const { gemini_path: name } = config;
  return name !== undefined && /[\\/]/.test(name) ? resolved(config, name) : name;
}

/** The options in alhena's words. `gemini` is the CLI to run; without it `alhena` finds one. */
export function alhenaOptions(config: GivenConfig, directory: string, gemini?: string): Options {
  return {
    cwd: directory,
    gemini,
    trust: true,
    timeout: timeoutOf(config),
    model: config.model,
    approval: config.yolo ? 'yolo' : APPROVAL_MODES[config.approval_mode ?? 'default'],
    includeDirs: config.include_directories?.map((item) => resolved(config, item)),
    sandbox: config.sandbox,
    denyTools: config.disable_tools,
    allowTools: config.allow_tools,
    mcpServers: config.mcp_settings_path ? resolved(config, config.mcp_settings_path) : config.mcp_servers,
    sessionId: config.session_id,
    resume: config.resume,
    systemPrompt: config.system_prompt,
    maxTurns: config.max_turns === undefined ? undefined : Number(config.max_turns),
    schema: typeof config.schema === 'string' ? resolved(config, config.schema) : config.schema,
  };
}

/** The variables for the CLI. */
export function variables(config: GivenConfig): Record<string, string> {
  return {
    ...(config.apiKey && { GEMINI_API_KEY: config.apiKey }),
    ...(config.googleCloudProject && { GOOGLE_CLOUD_PROJECT: config.googleCloudProject }),
    ...(config.useVertexAI !== undefined && { GOOGLE_GENAI_USE_VERTEXAI: String(config.useVertexAI) }),
  };
}
