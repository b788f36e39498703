/** Asking Gemini CLI. */

import type { Event, Message } from './alhena.js';
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
  checkPrompt(prompt);
  const { scratch, remove } = await makeScratch();
  try {
    const args = ['run', '--as=message-lines', ...runArguments(options, scratch), '-'];
    if (options.extraArgs?.length) args.push('--', ...options.extraArgs);
    const running = start({ args, input: prompt, env: environment(options), binary: options.binary, signal: options.signal });
    let result: ResultMessage | undefined;
    try {
      const told = new Told(options);
      for await (const line of running.lines) {
        for (const message of told.line(json(line) as MessageLine)) {
          if (message.type === 'result') result = message;
          else yield message;
        }
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

export function checkPrompt(prompt: unknown): void {
  if (typeof prompt !== 'string') throw new AlhenaError('usage', `the prompt must be a string, got: ${typeof prompt}`);
}

/** Runs Gemini CLI on a prompt and gives the result; throws a `RunFailedError` unless it succeeded. */
export async function ask(prompt: string, options: QueryOptions = {}): Promise<ResultMessage> {
  let result: ResultMessage | undefined;
  for await (const message of query(prompt, options)) if (message.type === 'result') result = message;
  if (!result) throw new CommandFailedError('protocol', 'the run ended without a result');
  return result;
}

/**
 * The lines as messages, each when it is whole: an answer and its tool results when another one begins or the run is over. Over ACP
 * the tools of one answer run one after the other, so an answer still grows while its results come in.
 */
export class Told {
  readonly #options: Pick<QueryOptions, 'includeEvents' | 'includePartialMessages'>;
  readonly #whole = new Set<string>();
  readonly #growing = new Map<string, Message>();
  #session = '';

  constructor(options: Pick<QueryOptions, 'includeEvents' | 'includePartialMessages'>) {
    this.#options = options;
  }

  *line(line: MessageLine): Generator<QueryMessage, void, undefined> {
    const session_id = this.#session;
    if (line.type === 'event') {
      yield* this.#event(line.event, line.message);
    } else if (line.type === 'message') {
      // As it turned out when everything was known.
      if (this.#options.includePartialMessages) yield { type: 'partial', message: line.message, session_id };
    } else if (line.type === 'result') {
      for (const message of line.messages) if (!this.#whole.has(message.id)) yield { type: message.role, message, session_id };
      yield resultOf(line.outcome, line.messages);
    }
  }

  *#event(event: Event, message: Message | undefined): Generator<QueryMessage, void, undefined> {
    if (event.type === 'started') {
      this.#session = event.session_id;
      yield { type: 'system', subtype: 'init', session_id: event.session_id, model: event.model };
    }
    const session_id = this.#session;
    if (this.#options.includeEvents) yield { type: 'stream_event', event };
    if (!message || this.#whole.has(message.id)) return;
    if (!this.#growing.has(message.id) && !holdsResults(message)) {
      for (const before of this.#growing.values()) {
        this.#whole.add(before.id);
        yield { type: before.role, message: before, session_id };
      }
      this.#growing.clear();
    }
    this.#growing.set(message.id, message);
    if (this.#options.includePartialMessages) yield { type: 'partial', message, session_id };
  }
}

/** Whether a message holds the results of the tools that the answer before it called. */
function holdsResults({ content }: Message): boolean {
  return typeof content !== 'string' && content.some((block) => block.type === 'tool_result');
}
