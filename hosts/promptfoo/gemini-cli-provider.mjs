// @ts-check
/**
 * Gemini CLI as a provider of promptfoo, through `alhena`.
 *
 * `alhena` runs the CLI, decides whether it really succeeded, and leaves nothing behind when a call times out or is aborted.
 * What a call returns is printed by `alhena run --as promptfoo`; here are only the options, the cache and the process.
 */

import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';

/** @typedef {import('./provider-response').ProviderResponse & {cached?: boolean}} Response */

const DEFAULT_TIMEOUT_MS = 120000;
/** How long `alhena` gets beyond a call's own time to stop everything. */
const GRACE_MS = 30000;
/** A directory that takes longer than this to look at, or holds more files, is not worth caching. */
const FINGERPRINT_MS = 2000;
const FINGERPRINT_FILES = 20000;

const TEXTS = ['apiKey', 'googleCloudProject', 'model', 'working_dir', 'mcp_settings_path', 'session_id', 'resume', 'system_prompt'];
const SWITCHES = ['useVertexAI', 'yolo', 'cache'];
const LISTS = ['include_directories', 'disable_tools', 'allow_tools'];
const APPROVAL_MODES = ['suggest', 'auto_edit', 'full_auto', 'default', 'yolo', 'plan'];

export default class GeminiCliProvider {
  /** @param {{config?: Record<string, any>, env?: Record<string, string | undefined>}} [options] */
  constructor(options = {}) {
    this.config = options.config ?? {};
    this.env = options.env ?? {};
  }

  id() {
    return 'google:gemini-cli';
  }

  toString() {
    return '[Google Gemini CLI Provider]';
  }

  /**
   * @param {string} prompt
   * @param {any} [context]
   * @param {{abortSignal?: AbortSignal}} [callOptions]
   * @returns {Promise<Response | {error: string}>} never rejects: whatever goes wrong is an `error`
   */
  async callApi(prompt, context, callOptions) {
    try {
      const config = checked({ ...this.config, ...context?.prompt?.config });
      const given = config.working_dir && path.resolve(config.basePath || '.', config.working_dir);
      const cache = await openCache(prompt, config, given, context);
      const known = await cache?.get();
      if (known) {
        return { ...known, cached: true };
      }
      const response = await withPlace(given, config, (dir, files) =>
        this.#run(prompt, [...commandLine(config, dir), ...files], config, callOptions?.abortSignal),
      );
      if (response.error === undefined) {
        await cache?.set(response);
      }
      return response;
    } catch (error) {
      return { error: `Gemini CLI error: ${error instanceof Error ? error.message : error}` };
    }
  }

  /** @returns {Promise<Response>} */
  async #run(prompt, args, config, abortSignal) {
    if (abortSignal?.aborted) {
      throw new Error('The call was aborted before it began');
    }
    const child = spawn(process.env.ALHENA_BIN || 'alhena', [...args, '-'], {
      env: environment(this.env, config),
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    const stop = () => child.kill('SIGTERM');
    abortSignal?.addEventListener('abort', stop, { once: true });
    const guard = setTimeout(() => child.kill('SIGKILL'), timeoutOf(config) + GRACE_MS);
    try {
      const [code, stdout, stderr] = await ended(child, prompt);
      try {
        return JSON.parse(stdout);
      } catch {
        throw new Error(`Exit code ${code}: ${stderr || stdout}`);
      }
    } finally {
      clearTimeout(guard);
      abortSignal?.removeEventListener('abort', stop);
    }
  }
}

/** Exit code, standard output and standard error of a process that is given `input`. */
function ended(child, input) {
  return new Promise((resolve, reject) => {
    const out = [];
    const err = [];
    child.stdout.on('data', (data) => out.push(data));
    child.stderr.on('data', (data) => err.push(data));
    child.on('error', (error) =>
      reject(error.code === 'ENOENT' ? new Error('alhena is not on PATH, and ALHENA_BIN does not say where it is') : error),
    );
    child.on('close', (code, signal) =>
      resolve([code ?? signal, Buffer.concat(out).toString('utf8'), Buffer.concat(err).toString('utf8')]),
    );
    // It may end before it has read everything; its exit code says why.
    child.stdin.on('error', () => {});
    child.stdin.end(input);
  });
}

function checked(config) {
  const wrong = (key, wanted) => new Error(`${key} must be ${wanted}, got: ${JSON.stringify(config[key])}`);
  const given = (keys) => keys.filter((key) => config[key] !== undefined && config[key] !== null);
  for (const key of given(TEXTS)) {
    if (typeof config[key] !== 'string') throw wrong(key, 'a string');
  }
  for (const key of given(SWITCHES)) {
    if (typeof config[key] !== 'boolean') throw wrong(key, 'true or false');
  }
  for (const key of given(LISTS)) {
    const strings = Array.isArray(config[key]) && config[key].every((item) => typeof item === 'string');
    if (!strings) throw wrong(key, 'a list of strings');
  }
  if (given(['approval_mode']).length && !APPROVAL_MODES.includes(config.approval_mode)) {
    throw wrong('approval_mode', `one of ${APPROVAL_MODES.slice(0, 3).join(', ')}`);
  }
  if (given(['timeout_ms']).length && !(Number(config.timeout_ms) > 0)) {
    throw wrong('timeout_ms', 'a number > 0');
  }
  return config;
}

function timeoutOf(config) {
  return Number(config.timeout_ms ?? DEFAULT_TIMEOUT_MS);
}

/** The arguments of `alhena` for a configuration, without files that have to be made first. */
export function commandLine(config, dir) {
  const args = ['run', '--as', 'promptfoo', '--trust', `--dir=${dir}`, `--timeout=${timeoutOf(config)}ms`];
  const add = (flag, values) => args.push(...values.filter((value) => value !== undefined && value !== null).map((value) => `${flag}=${value}`));
  add('--model', [config.model]);
  add('--approval', [config.yolo ? 'yolo' : config.approval_mode]);
  add('--include-dir', config.include_directories ?? []);
  add('--sandbox', [{ false: 'off', true: 'on' }[String(config.sandbox)] ?? config.sandbox]);
  add('--deny-tool', config.disable_tools ?? []);
  add('--allow-tool', config.allow_tools ?? []);
  add('--mcp-server', [config.mcp_settings_path && path.resolve(config.basePath || '.', config.mcp_settings_path)]);
  add('--session-id', [config.session_id]);
  add('--resume', [config.resume]);
  add('--system-prompt', [config.system_prompt]);
  add('--max-turns', [config.max_turns]);
  return args;
}

function environment(overrides, config) {
  const env = { ...process.env, ...overrides };
  if (config.apiKey) env.GEMINI_API_KEY = config.apiKey;
  if (config.googleCloudProject) env.GOOGLE_CLOUD_PROJECT = config.googleCloudProject;
  if (config.useVertexAI !== undefined && config.useVertexAI !== null) env.GOOGLE_GENAI_USE_VERTEXAI = String(config.useVertexAI);
  return env;
}

/** Calls `work` with the directory to work in and more arguments; what was made for the call is gone afterwards. */
async function withPlace(given, config, work) {
  const scratch = await mkdtemp(path.join(tmpdir(), 'promptfoo-gemini-cli-'));
  try {
    const dir = given ?? path.join(scratch, 'work');
    const args = [];
    if (!given) {
      await mkdir(dir);
    }
    if (config.mcp_servers) {
      const file = path.join(scratch, 'mcp.json');
      await writeFile(file, JSON.stringify({ mcpServers: config.mcp_servers }));
      args.push(`--mcp-server=${file}`);
    }
    return await work(dir, args);
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

/**
 * The place of a call in promptfoo's cache: the same prompt, configuration and files in the working directory. None when
 * caching is off, or when what the call depends on cannot be known: a session, an MCP server.
 */
async function openCache(prompt, config, dir, context) {
  const off = process.env.PROMPTFOO_CACHE_ENABLED === 'false' || process.argv.includes('--no-cache') || context?.bustCache;
  const unknowable = config.resume || config.session_id || config.mcp_settings_path || config.mcp_servers;
  if (off || config.cache === false || (unknowable && config.cache !== true) || typeof context?.getCache !== 'function') {
    return undefined;
  }
  const fingerprint = dir ? await fingerprintOf(dir) : 'empty';
  if (!fingerprint) {
    return undefined;
  }
  const { apiKey, basePath, ...rest } = config;
  const depends = JSON.stringify([prompt, sorted(rest), dir, fingerprint, context.repeatIndex || 0]);
  const key = `alhena:gemini-cli:${createHash('sha256').update(depends).digest('hex')}`;
  const cache = await context.getCache();
  return {
    async get() {
      const text = await cache.get(key);
      return text && JSON.parse(text);
    },
    async set(response) {
      await cache.set(key, JSON.stringify(response));
    },
  };
}

/** An object with its keys in order, so that the same configuration is always the same text. */
function sorted(value) {
  if (Array.isArray(value) || typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.keys(value).sort().map((key) => [key, sorted(value[key])]));
}

/** Names, sizes and times of all files of a directory, as one hash; nothing when that takes too long. */
export async function fingerprintOf(dir) {
  const deadline = Date.now() + FINGERPRINT_MS;
  const seen = [];
  const waiting = [dir];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    for (const entry of await readdir(next, { withFileTypes: true })) {
      if (Date.now() > deadline || seen.length > FINGERPRINT_FILES) return undefined;
      const file = path.join(next, entry.name);
      if (entry.isDirectory()) {
        // Git writes there whenever it looks.
        if (entry.name !== '.git') waiting.push(file);
      } else {
        const { size, mtimeMs } = await stat(file).catch(() => ({ size: -1, mtimeMs: -1 }));
        seen.push(`${path.relative(dir, file)}\0${size}\0${mtimeMs}`);
      }
    }
  }
  return createHash('sha256').update(seen.sort().join('\n')).digest('hex');
}
