/** What is installed, and what was said before. */

import path from 'node:path';

import type { Message } from './alhena.js';
import { environment, sessionId, trustArguments, type Options } from './options.js';
import { answer, communicate } from './process.js';

/** Where to look, and with what. */
export type Where = Pick<Options, 'cwd' | 'env' | 'binary'>;

/** The Gemini CLI that would run. */
export interface Detected {
  path: string;
  version?: string;
  /** Where it was found, such as `path` or `project`. */
  place: string;
  [detail: string]: unknown;
}

/** A session in the store of Gemini CLI. */
export interface SessionInfo {
  id: string;
  [detail: string]: unknown;
}

const NOT_INSTALLED = 3;

/** The Gemini CLI that would run in a directory, or null when there is none. `query` with the same options runs this one. */
export async function detect(options: Where & Pick<Options, 'gemini' | 'trust' | 'useConfig'> = {}): Promise<Detected | null> {
  const args = ['detect', '--json', directory(options)];
  if (options.gemini !== undefined) args.push(`--gemini=${options.gemini}`);
  args.push(...trustArguments(options.trust));
  if (options.useConfig === false) args.push('--no-config');
  const done = await communicate({ args, env: environment(options), binary: options.binary });
  return done.exitCode === NOT_INSTALLED ? null : (answer(done) as Detected);
}

/** The sessions of a folder, the newest first. */
export async function listSessions(options: Where = {}): Promise<SessionInfo[]> {
  const args = ['sessions', 'list', '--json', directory(options)];
  return answer(await communicate({ args, env: environment(options), binary: options.binary })) as SessionInfo[];
}

/** The messages of a session of a folder: the one with this id, or the latest. An id is never taken for a path. */
export async function loadMessages(options: Where & { sessionId?: string | undefined } = {}): Promise<Message[]> {
  const args = ['sessions', 'show', '--as=messages', directory(options), '--', sessionId(options.sessionId) ?? 'latest'];
  return answer(await communicate({ args, env: environment(options), binary: options.binary })) as Message[];
}

function directory({ cwd = '.' }: Where): string {
  return `--dir=${path.resolve(cwd)}`;
}
