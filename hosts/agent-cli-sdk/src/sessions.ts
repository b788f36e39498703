import { existsSync } from 'node:fs';
import path from 'node:path';

import { AlhenaError } from 'alhena';
import { answer, communicate, communicateSync, environment, sessionId } from 'alhena/adapter';

import type { LoadMessagesOptions, LoadSessionOptions, UnifiedMessage } from './types.js';

/**
 * Returns the messages of a session: the one with `sessionId`, or the most recent of the project. Rejects with an error of the
 * kind `no_session` if there is none.
 */
export async function loadSession(options: LoadSessionOptions = {}): Promise<UnifiedMessage[]> {
  const project = options.projectPath || process.cwd();
  const which = sessionId(options.sessionId) ?? 'latest';
  const args = ['sessions', 'show', '--as=agent-cli-sdk', `--dir=${path.resolve(project)}`, '--', which];
  const done = await communicate({ args, env: environment(options) });
  const missing = done.stderr.includes('No Gemini session') || !existsSync(project);
  if (done.exitCode !== 0 && missing) throw new AlhenaError('no_session', `No Gemini session found for project: ${project}`);
  return answer(done) as UnifiedMessage[];
}

/** The same under the name that the SDK's router calls. */
export function loadMessages(options: LoadMessagesOptions = {}): Promise<UnifiedMessage[]> {
  return loadSession(options);
}

/** A record of a session file, parsed or as text, as a message. */
export function parse(record: object | string): UnifiedMessage {
  const input = typeof record === 'string' ? record : JSON.stringify(record);
  const messages = answer(communicateSync({ args: ['parse', '--from=message', '--as=agent-cli-sdk', '-'], input })) as UnifiedMessage[];
  const [message] = messages;
  if (!message || messages.length > 1) throw new Error(`one record makes one message, and this made ${messages.length}`);
  return message;
}
