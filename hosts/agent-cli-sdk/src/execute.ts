import { AlhenaError, BinaryNotFoundError, type Event } from 'alhena';
import { cancelled, environment, json, refused, runArguments, sessionId, start, withScratch, type Options } from 'alhena/adapter';

import type { ExecuteOptions, ExecuteResult, UnifiedMessage } from './types.js';

/** What `alhena run --as agent-cli-sdk-lines` prints. */
type Line =
  | { type: 'event'; event: Event; message?: UnifiedMessage }
  | { type: 'message'; message: UnifiedMessage }
  | { type: 'result'; result: ExecuteResult; json: unknown };

/**
 * The options of `alhena`. Like the SDK's own runs, these do not ask whether a folder is trusted, and have no limit of time
 * unless `timeout` sets one.
 */
export function alhenaOptions(options: ExecuteOptions): Options {
  return {
    approval: options.permissionMode,
    trust: true,
    cwd: options.workingDir,
    model: options.model,
    // Not left out: the user's defaults (`alhena help config`) may have a time-out.
    timeout: options.timeout ?? 'none',
    systemPrompt: options.systemPrompt,
    includeDirs: options.includeDirectories,
    allowTools: options.allowedTools,
    denyTools: options.disallowedTools,
    schema: options.schema,
    ...(options.resume ? { resume: sessionId(options.sessionId) ?? true } : { sessionId: options.sessionId }),
  };
}

/**
 * Runs Gemini CLI on a prompt. Never rejects: a failure is a result with `success: false`, also when a callback throws, which
 * stops the run.
 */
export async function execute<T = string>(options: ExecuteOptions): Promise<ExecuteResult<T>> {
  const began = Date.now();
  let result: ExecuteResult<T>;
  try {
    result = await withScratch((scratch) => run<T>(options, scratch));
  } catch (error) {
    const { message } = error instanceof Error ? error : new Error(String(error));
    const exitCode = (error instanceof AlhenaError && error.exitCode) || (error instanceof BinaryNotFoundError ? 127 : 1);
    result = { success: false, exitCode, sessionId: '', duration: Date.now() - began, messages: [], data: '' as T, error: message };
    quietly(() => options.onError?.(error instanceof Error ? error : new Error(message)));
  }
  quietly(() => options.onClose?.(result.exitCode));
  return result;
}

async function run<T>(options: ExecuteOptions, scratch: string): Promise<ExecuteResult<T>> {
  const args = ['run', '--as=agent-cli-sdk-lines', ...runArguments(alhenaOptions(options), scratch)];
  if (options.verbose) args.push('--verbose');
  let broken: { error: unknown } | undefined;
  const stopped = new AbortController();
  /** Nobody listens any more: what the agent does from there on nobody asked for. */
  const tell = (callback: () => void) => {
    try {
      if (!broken) callback();
    } catch (error) {
      broken = { error };
      stopped.abort();
    }
  };
  const running = start({
    args: [...args, '-'],
    input: options.prompt,
    env: environment(options),
    signal: options.signal ? AbortSignal.any([options.signal, stopped.signal]) : stopped.signal,
    onStart: (process) => tell(() => options.onStart?.(process)),
    onStdout: options.onStdout && ((chunk) => tell(() => options.onStdout?.(chunk))),
    onStderr: (chunk) => {
      if (options.verbose) process.stderr.write(chunk);
      tell(() => options.onStderr?.(chunk));
    },
  });
  let last: Extract<Line, { type: 'result' }> | undefined;
  try {
    for await (const raw of running.lines) {
      const line = json(raw) as Line;
      if (line.type === 'result') last = line;
      else tell(() => options.onEvent?.({ raw, event: line.type === 'event' ? line.event : null, message: line.message ?? null }));
    }
  } finally {
    if (!last) await running.stop();
  }
  const ended = await running.finished;
  if (broken) throw broken.error;
  if (!last) throw options.signal?.aborted ? cancelled() : refused(ended);
  const found = options.json && !options.schema && last.json !== null && last.json !== undefined;
  return { ...last.result, data: (found ? last.json : last.result.data) as T };
}

/** The run is over: what a callback says of it changes nothing. */
function quietly(callback: () => void): void {
  try {
    callback();
  } catch {
    // Execute never rejects.
  }
}
