import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';

import type { Event } from './alhena.js';
import { alhena, type Ended } from './alhena-process.js';
import { extractJson } from './json.js';
import type { CamelMessage, ExecuteOptions, ExecuteResult, PermissionMode, StreamMessage } from './types.js';
import { camelMessage } from './usage.js';

const APPROVAL: Record<PermissionMode, string> = {
  default: 'default',
  acceptEdits: 'auto-edit',
  bypassPermissions: 'yolo',
  plan: 'plan',
};

/** The arguments of `alhena run` for these options; the prompt goes by standard input. */
export function commandLine(options: ExecuteOptions): string[] {
  const args = ['run', '--as', 'events', '--trust', `--approval=${APPROVAL[options.permissionMode ?? 'default']}`];
  const add = (flag: string, ...values: Array<string | number | undefined>) =>
    args.push(...values.filter((value) => value !== undefined).map((value) => `${flag}=${value}`));
  add('--dir', options.workingDir);
  add('--model', options.model);
  add('--timeout', options.timeout === undefined ? undefined : `${options.timeout}ms`);
  add('--system-prompt', options.systemPrompt);
  add('--include-dir', ...(options.includeDirectories ?? []));
  add('--allow-tool', ...(options.allowedTools ?? []));
  add('--deny-tool', ...(options.disallowedTools ?? []));
  if (options.resume) args.push(options.sessionId ? `--resume=${options.sessionId}` : '--resume');
  else add('--session-id', options.sessionId);
  return args;
}

export async function execute<T = string>(
  options: ExecuteOptions & { usage: 'camelCase' },
): Promise<Omit<ExecuteResult<T>, 'messages'> & { messages: CamelMessage[] }>;
export async function execute<T = string>(options: ExecuteOptions): Promise<ExecuteResult<T>>;
/**
 * Runs Gemini CLI on a prompt. Never rejects: a failure is a result with `success: false`, also when `onEvent` throws, which
 * stops the run.
 */
export async function execute<T = string>(
  options: ExecuteOptions,
): Promise<Omit<ExecuteResult<T>, 'messages'> & { messages: unknown[] }> {
  const began = Date.now();
  const scratch = await mkdtemp(path.join(tmpdir(), 'agent-cli-sdk-'));
  const recording = path.join(scratch, 'recording');
  const broken = new AbortController();
  try {
    const ran = await alhena({
      args: [...commandLine(options), `--record=${recording}`, '-'],
      input: options.prompt,
      env: options.env,
      signal: options.signal ? AbortSignal.any([options.signal, broken.signal]) : broken.signal,
      onLine: (line) => {
        try {
          tell(line, options);
        } catch (error) {
          // Nobody listens any more: what the agent does from here on nobody asked for.
          broken.abort(error);
        }
      },
    });
    if (broken.signal.aborted) throw broken.signal.reason;
    const result = (await replay<T>(recording, options.env)) ?? notStarted<T>(ran, Date.now() - began);
    const found = options.json && typeof result.data === 'string' ? extractJson(result.data) : undefined;
    return {
      ...result,
      data: found === undefined ? result.data : (found as T),
      messages: options.usage === 'camelCase' ? result.messages.map(camelMessage) : result.messages,
    };
  } catch (error) {
    const exitCode = broken.signal.aborted ? 1 : 127;
    return notStarted<T>({ exitCode, stdout: '', stderr: String(error instanceof Error ? error.message : error) }, Date.now() - began);
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

function tell(line: string, options: ExecuteOptions): void {
  if (!options.onEvent || !line) return;
  const event = JSON.parse(line) as Event;
  const message = messageOf(event);
  options.onEvent({ raw: line, event, ...(message && { message }) });
}

/** What the recording of a run comes to: the session file next to the stream has thoughts, diffs and tokens. */
async function replay<T>(recording: string, env: NodeJS.ProcessEnv | undefined): Promise<ExecuteResult<T> | undefined> {
  const { stdout } = await alhena({ args: ['parse', '--as', 'agent-cli-sdk', recording], env });
  return stdout ? (JSON.parse(stdout) as ExecuteResult<T>) : undefined;
}

/** A run that never came to an outcome: alhena refused it, or could not be started. */
function notStarted<T>(ended: Ended, duration: number): ExecuteResult<T> {
  const error = ended.stderr.trim() || `alhena ended with exit code ${ended.exitCode}`;
  return { success: false, exitCode: ended.exitCode || 1, sessionId: '', duration, messages: [], data: '', error };
}

/** What an event adds to the conversation. */
export function messageOf(event: Event): StreamMessage | undefined {
  const say = (role: StreamMessage['role'], content: StreamMessage['content']): StreamMessage => ({
    role,
    content,
    timestamp: Date.parse(event.at),
    tool: 'gemini',
  });
  switch (event.type) {
    case 'prompt':
      return say('user', [{ type: 'text', text: event.text }]);
    case 'text':
      return say('assistant', [{ type: 'text', text: event.delta }]);
    case 'thinking':
      return say('assistant', [{ type: 'thinking', thinking: `${event.subject}: ${event.text}` }]);
    case 'tool_call':
      return say('assistant', [{ type: 'tool_use', id: event.id, name: event.claude_name, input: event.input }]);
    case 'tool_result':
      return say('assistant', [
        { type: 'tool_result', tool_use_id: event.id, content: event.output ?? event.error?.message ?? '', is_error: !event.ok },
      ]);
    default:
      return undefined;
  }
}
