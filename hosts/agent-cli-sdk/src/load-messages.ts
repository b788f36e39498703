import { alhena } from './alhena-process.js';
import type { CamelMessage, LoadMessagesOptions, UnifiedMessage } from './types.js';
import { camelMessage } from './usage.js';

export async function loadMessages(options: LoadMessagesOptions & { usage: 'camelCase' }): Promise<CamelMessage[]>;
export async function loadMessages(options?: LoadMessagesOptions): Promise<UnifiedMessage[]>;
/** The messages of a session: the one with `sessionId`, or the most recent of the project. Rejects when there is none. */
export async function loadMessages(options: LoadMessagesOptions = {}): Promise<unknown[]> {
  const projectPath = options.projectPath ?? process.cwd();
  const { exitCode, stdout, stderr } = await alhena({
    args: ['sessions', 'show', '--as', 'messages', `--dir=${projectPath}`, '--', options.sessionId ?? 'latest'],
    env: options.env,
  });
  if (exitCode !== 0) {
    const none = stderr.includes('No Gemini session');
    throw new Error(none ? `No Gemini session found for project: ${projectPath}` : stderr.trim());
  }
  const messages = JSON.parse(stdout) as UnifiedMessage[];
  return options.usage === 'camelCase' ? messages.map(camelMessage) : messages;
}
