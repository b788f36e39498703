/** A conversation of several turns with one agent that stays warm. */

import { Connection } from './connection.js';
import { AlhenaError, RunFailedError } from './errors.js';
import type { QueryMessage, ResultMessage } from './messages.js';
import type { Approval } from './options.js';
import type { CanUseTool } from './permissions.js';
import { checkPrompt, type QueryOptions } from './query.js';

/** Options of a conversation. `timeout` is for each turn; `signal` ends the whole. */
export interface ClientOptions extends Omit<QueryOptions, 'record' | 'sessionId'> {
  /** Whether a tool may be used that the options do not decide about; without it, it may not. */
  canUseTool?: CanUseTool | undefined;
}

/**
 * A conversation with Gemini CLI, turn after turn. The messages are those of `query`.
 *
 * It has to be closed: that stops Gemini CLI and every process that it started, and waits until none is left; the session is in
 * the store then.
 */
export class Client {
  readonly #options: ClientOptions;
  #open: Connection | undefined;

  constructor(options: ClientOptions = {}) {
    if (typeof options !== 'object' || options === null) throw new AlhenaError('usage', 'the options must be an object');
    for (const name of ['record', 'sessionId']) {
      if (name in options) throw new AlhenaError('usage', `${name} is for a run, not for a conversation`, 'Use `query`.');
    }
    if (options.canUseTool !== undefined && typeof options.canUseTool !== 'function') {
      throw new AlhenaError('usage', 'canUseTool must be a function');
    }
    this.#options = options;
  }

  /** Starts it; `query` and `ask` do that, too. */
  async connect(): Promise<void> {
    if (this.#open) throw new AlhenaError('usage', 'the client is connected already');
    this.#open = new Connection(this.#options);
    try {
      await this.#open.begin();
    } catch (error) {
      await this.close();
      throw error;
    }
  }

  /** Says something. While a turn goes on, it waits for its end. */
  async query(prompt: string): Promise<void> {
    checkPrompt(prompt);
    if (!this.#open) await this.connect();
    this.#connection().say({ type: 'user', message: { role: 'user', content: prompt } });
  }

  /** All messages of all turns, until the client is closed. An `alhena` that ends by itself is an error. */
  async *receiveMessages(): AsyncGenerator<QueryMessage, void, undefined> {
    const connection = this.#connection();
    for (let message = await connection.next(); message; message = await connection.next()) yield message;
  }

  /** The messages of one turn; the last one is its result, also of a turn that failed or was interrupted. */
  async *receiveResponse(): AsyncGenerator<QueryMessage, void, undefined> {
    for await (const message of this.receiveMessages()) {
      yield message;
      if (message.type === 'result') return;
    }
  }

  /** A whole turn: its result; a `RunFailedError` unless it succeeded. The conversation goes on after that, too. */
  async ask(prompt: string): Promise<ResultMessage> {
    await this.query(prompt);
    for await (const message of this.receiveResponse()) {
      if (message.type !== 'result') continue;
      if (message.is_error) throw new RunFailedError(message, undefined);
      return message;
    }
    throw Connection.over();
  }

  /** Ends the turn that goes on: its result is then `cancelled`. The conversation goes on. */
  async interrupt(): Promise<void> {
    await this.#connection().request({ subtype: 'interrupt' });
  }

  /** Another model from the next prompt on; the first one without a name. */
  async setModel(model?: string): Promise<void> {
    await this.#connection().request({ subtype: 'set_model', model: model ?? null });
  }

  /** What the model may do without asking, from now on. */
  async setPermissionMode(mode: Approval): Promise<void> {
    await this.#connection().request({ subtype: 'set_permission_mode', mode });
  }

  /** To go on by `resume`, once a turn has begun. */
  get sessionId(): string | undefined {
    return this.#open?.sessionId;
  }

  /** Ends it, and resolves when nothing is left. A turn that goes on is stopped. */
  async close(): Promise<void> {
    const connection = this.#open;
    this.#open = undefined;
    await connection?.close();
  }

  #connection(): Connection {
    if (!this.#open) throw new AlhenaError('usage', 'the client is not connected', 'Call `connect` or `query` first.');
    return this.#open;
  }
}
