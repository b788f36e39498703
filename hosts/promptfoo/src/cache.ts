/** A call's place in promptfoo's own cache. */

import { createHash } from 'node:crypto';
import { readdir, stat } from 'node:fs/promises';
import path from 'node:path';

import { alhenaOptions, type GivenConfig } from './config.js';
import type { CallContext, Response } from './index.js';

/** A directory that takes longer than this to look at, or holds more files, is not worth caching. */
const FINGERPRINT_MS = 2000;
const FINGERPRINT_FILES = 20000;

export interface Place {
  get(): Promise<Response | undefined>;
  set(response: Response): Promise<void>;
}

/**
 * The place of a call in promptfoo's cache: the same prompt, options, Gemini CLI and files in the working directory. None when
 * caching is off, or when the call depends on something that the key cannot hold, such as a session or an MCP server.
 */
export async function cachePlace(
  prompt: string,
  config: GivenConfig,
  directory: string | undefined,
  gemini: string | undefined,
  context: CallContext | undefined,
): Promise<Place | undefined> {
  const off = process.env['PROMPTFOO_CACHE_ENABLED'] === 'false' || process.argv.includes('--no-cache') || context?.bustCache;
  const unknowable = config.resume || config.session_id || config.mcp_settings_path || config.mcp_servers;
  if (off || config.cache === false || (unknowable && config.cache !== true) || !context?.getCache) return undefined;
  const fingerprint = directory ? await fingerprintOf(directory) : 'empty';
  if (!fingerprint) return undefined;
  const { apiKey, basePath, ...rest } = config;
  // Paths in the options are relative to the config file: two files with the same options can mean different ones.
  const meant = alhenaOptions(config, directory ?? '', gemini);
  const depends = JSON.stringify([prompt, sorted(rest), sorted(meant), fingerprint, context.repeatIndex || 0]);
  const key = `alhena:gemini-cli:${createHash('sha256').update(depends).digest('hex')}`;
  const cache = await context.getCache();
  return {
    async get() {
      const text = await cache.get(key);
      return typeof text === 'string' ? asCached(JSON.parse(text) as Response) : undefined;
    },
    async set(response) {
      await cache.set(key, JSON.stringify(response));
    },
  };
}

/** As promptfoo's own providers tell it: tokens that were spent before, and a cost of nothing, which assertions can see. */
function asCached(response: Response): Response {
  const usage = response.tokenUsage;
  const tokenUsage = usage && {
    cached: usage.total,
    total: usage.total,
    numRequests: 1,
    ...(usage.completionDetails && { completionDetails: usage.completionDetails }),
  };
  return { ...response, ...(response.cost !== undefined && { cost: 0 }), ...(tokenUsage && { tokenUsage }), cached: true };
}

/** An object with its keys in order, so that the same options are always the same text. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value) || typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)).map(([key, item]) => [key, sorted(item)]));
}

/** Names, sizes and times of all files of a directory, as one hash; nothing when that takes too long. */
export async function fingerprintOf(directory: string): Promise<string | undefined> {
  const deadline = Date.now() + FINGERPRINT_MS;
  const seen: string[] = [];
  const waiting = [directory];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    for (const entry of await readdir(next, { withFileTypes: true })) {
      if (Date.now() > deadline || seen.length > FINGERPRINT_FILES) return undefined;
      const file = path.join(next, entry.name);
      if (entry.isDirectory()) {
        // Git writes there whenever it looks.
        if (entry.name !== '.git') waiting.push(file);
      } else {
        const { size, mtimeMs } = await stat(file).catch(() => ({ size: -1, mtimeMs: -1 }));
        seen.push(`${path.relative(directory, file)}\0${size}\0${mtimeMs}`);
      }
    }
  }
  return createHash('sha256').update(seen.sort().join('\n')).digest('hex');
}
