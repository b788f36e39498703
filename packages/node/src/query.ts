/** Asking Gemini CLI. */

import type { Message } from './alhena.js';
import { AlhenaError, CommandFailedError, RunFailedError } from './errors.js';
import { resultOf, type MessageLine, type QueryMessage, type ResultMessage } from './messages.js';
import { environment, runArguments, type Options } from './options.js';
import { cancelled, json, refused, start } from './process.js';
import { makeScratch } from './scratch.js';

export interface QueryOptions extends Options {
  /** Stops the run: `query` then ends with the result and an error of kind `cancelled`; aborted before it began, without a result. */
  signal?: AbortSignal | undefined;
  /** Whether messages come while they grow, too. */
  includePartialMessages?: boolean | undefined;
  /** Whether each event comes as well. */
  includeEvents?: boolean | undefined;
}

/**
 * Runs Gemini CLI on a prompt, and yields what it says; the last message is the result.
 *
 * A run that did not succeed throws a `RunFailedError` after its result. Aborted, or left by `break`, it stops Gemini CLI and
 * every process that it started, and waits until none is left.
 */
export async function* query(prompt: string, options: QueryOptions = {}): AsyncGenerator<QueryMessage, void, undefined> {
  if (typeof prompt !== 'string') throw new AlhenaError('usage', `the prompt must be a string, got: ${typeof prompt}`);
  const { scratch, remove } = await makeScratch();
  try {
    const args = ['run', '--as=message-lines', ...runArguments(options, scratch), '-'];
    if (options.extraArgs?.length) args.push('--', ...options.extraArgs);
    const running = start({ args, input: prompt, env: environment(options), binary: options.binary, signal: options.signal });
    let result: ResultMessage | undefined;
    try {
      for await (const message of told(running.lines, options)) {
        if (message.type === 'result') result = message;
        else yield message;
      }
    } catch (error) {
      await running.stop();
      throw error;
    } finally {
      // Left early: nothing of it may live on.
      if (!result) await running.stop();
    }
    const ended = await running.finished;
    if (!result) throw options.signal?.aborted ? cancelled() : refused(ended);
    yield result;
    if (result.is_error) throw new RunFailedError(result, ended.exitCode);
  } finally {
    await remove();
  }
}

/** Runs Gemini CLI on a prompt and gives the result; throws a `RunFailedError` unless it succeeded. */
export async function ask(prompt: string, options: QueryOptions = {}): Promise<ResultMessage> {
  let result: ResultMessage | undefined;
  for await (const message of query(prompt, options)) if (message.type === 'result') result = message;
  if (!result) throw new CommandFailedError('protocol', 'the run ended without a result');
  return result;
}

/** The lines as messages: each when it is whole, which is when another one begins or the run is over. */
async function* told(lines: AsyncIterable<string>, options: QueryOptions): AsyncGenerator<QueryMessage, void, undefined> {
  let session_id = '';
  let growing: Message | undefined;
  const done = new Set<string>();
  const whole = (message: Message): QueryMessage => {
    done.add(message.id);
    return { type: message.role, message, session_id };
  };
  for await (const text of lines) {
    const line = json(text) as MessageLine;
    if (line.type === 'event') {
      if (line.event.type === 'started') {
        session_id = line.event.session_id;
        yield { type: 'system', subtype: 'init', session_id, model: line.event.model };
      }
      if (options.includeEvents) yield { type: 'stream_event', event: line.event };
      if (!line.message || done.has(line.message.id)) continue;
      if (growing && growing.id !== line.message.id) yield whole(growing);
      growing = line.message;
      if (options.includePartialMessages) yield { type: 'partial', message: growing, session_id };
    } else if (line.type === 'message') {
      // As it turned out when everything was known.
      if (options.includePartialMessages) yield { type: 'partial', message: line.message, session_id };
    } else if (line.type === 'result') {
      for (const message of line.messages) if (!done.has(message.id)) yield whole(message);
      yield resultOf(line.outcome, line.messages);
    }
  }
}
