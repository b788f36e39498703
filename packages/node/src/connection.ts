/** `alhena chat --control`, and all that was asked and is not answered. */

import type { ClientOptions } from './client.js';
import { AlhenaError, CommandFailedError, RunFailedError, withOptions } from './errors.js';
import type { MessageLine, QueryMessage, ResultMessage } from './messages.js';
import { environment, runArguments } from './options.js';
import type { PermissionResult, Question } from './permissions.js';
import { cancelled, json, refused, start, type Running } from './process.js';
import { Told } from './query.js';
import { makeScratch } from './scratch.js';

/** What it prints. */
type Line =
  | MessageLine
  | { type: 'control_response'; response: { subtype: 'success' | 'error'; request_id: string; error?: string } }
  | { type: 'control_request'; request_id: string; request: Question }
  | { type: 'control_cancel_request'; request_id: string };

interface Waiting {
  resolve(): void;
  reject(error: unknown): void;
}

/** Half a character is no text: a line with one would not be read, and nobody would answer it. */
function wellFormed(text: string): string {
  return Buffer.from(text, 'utf8').toString('utf8');
}

export class Connection {
  sessionId: string | undefined;
  readonly #options: ClientOptions;
  #running: Running | undefined;
  #remove: (() => Promise<void>) | undefined;
  #told: Told;
  #begun = false;
  #neverBegan: ResultMessage | undefined;
  // As many as are not taken: whoever does not take them must still hear what else is said.
  readonly #messages: QueryMessage[] = [];
  #waking: (() => void)[] = [];
  readonly #requests = new Map<string, Waiting>();
  #number = 0;
  readonly #deciding = new Map<string, AbortController>();
  #closing = false;
  #over = false;
  #error: unknown;
  #reading: Promise<void> | undefined;

  constructor(options: ClientOptions) {
    this.#options = options;
    this.#told = new Told(options);
  }

  /** Starts it, and resolves when it has begun. */
  async begin(): Promise<void> {
    const options = this.#options;
    const { scratch, remove } = await makeScratch();
    this.#remove = remove;
    // How long somebody may think about a question is the program's own affair.
    const args = ['chat', '--control', '--permission-timeout=none', ...runArguments(options, scratch)];
    if (options.extraArgs?.length) args.push('--', ...options.extraArgs);
    this.#running = start({ args, input: null, env: environment(options), binary: options.binary, signal: options.signal });
    this.#reading = this.#read(this.#running);
    await this.request({ subtype: 'initialize' });
  }

  async close(): Promise<void> {
    this.#closing = true;
    try {
      await this.#running?.stop();
      await this.#reading;
    } finally {
      this.#finish(undefined);
      await this.#remove?.();
    }
  }

  say(line: object): void {
    if (this.#over) throw this.#error ?? Connection.over();
    this.#running?.write(`${JSON.stringify(line, (_, value: unknown) => (typeof value === 'string' ? wellFormed(value) : value))}\n`);
  }

  async request(request: object): Promise<void> {
    const request_id = String(++this.#number);
    try {
      await new Promise<void>((resolve, reject) => {
        this.#requests.set(request_id, { resolve, reject });
        this.say({ type: 'control_request', request_id, request });
      });
    } finally {
      this.#requests.delete(request_id);
    }
  }

  /** The next message; undefined after the end. */
  async next(): Promise<QueryMessage | undefined> {
    while (this.#messages.length === 0 && !this.#over) await new Promise<void>((resolve) => this.#waking.push(resolve));
    const message = this.#messages.shift();
    if (!message && this.#error) throw this.#error;
    return message;
  }

  static over(): AlhenaError {
    return new AlhenaError('disconnected', 'the conversation is over', 'Connect again; `resume` goes on with its session.');
  }

  async #read(running: Running): Promise<void> {
    let error: unknown;
    try {
      for await (const line of running.lines) this.#line(json(line) as Line);
      const ended = await running.finished;
      if (this.#neverBegan) error = new RunFailedError(this.#neverBegan, ended.exitCode);
      else error = this.#options.signal?.aborted ? cancelled() : refused(ended);
    } catch (broken) {
      error = broken instanceof AlhenaError ? broken : new CommandFailedError('protocol', `alhena printed what nobody understands: ${String(broken)}`);
    }
    this.#finish(this.#closing ? undefined : error);
  }

  /** Nothing more comes. */
  #finish(error: unknown): void {
    if (this.#over) return;
    this.#over = true;
    this.#error = error;
    for (const { reject } of this.#requests.values()) reject(error ?? Connection.over());
    for (const controller of this.#deciding.values()) controller.abort();
    this.#wake();
  }

  #wake(): void {
    const waking = this.#waking;
    this.#waking = [];
    for (const wake of waking) wake();
  }

  #line(line: Line): void {
    if (line.type === 'control_response') {
      this.#begun = true;
      const { request_id, subtype, error } = line.response;
      if (subtype === 'success') this.#requests.get(request_id)?.resolve();
      else this.#requests.get(request_id)?.reject(new AlhenaError('usage', withOptions(error ?? 'it was refused')));
    } else if (line.type === 'control_request') {
      void this.#decide(line.request_id, line.request);
    } else if (line.type === 'control_cancel_request') {
      this.#deciding.get(line.request_id)?.abort();
    } else {
      for (const message of this.#told.line(line)) this.#tell(message);
      this.#wake();
    }
  }

  #tell(message: QueryMessage): void {
    if (message.type === 'result') {
      // The next turn is told anew.
      this.#told = new Told(this.#options);
      if (!this.#begun) {
        this.#neverBegan = message;
        return;
      }
    }
    if (message.type === 'system') this.sessionId = message.session_id;
    this.#messages.push(message);
  }

  async #decide(request_id: string, question: Question): Promise<void> {
    const controller = new AbortController();
    this.#deciding.set(request_id, controller);
    let response: object;
    try {
      response = { subtype: 'success', request_id, response: await this.#ask(question, controller.signal) };
    } catch (error) {
      // The model is told that it may not; people are told why.
      process.emitWarning(`canUseTool failed for ${question.tool_name}: ${String(error)}`, 'AlhenaWarning');
      response = { subtype: 'error', request_id, error: String(error) };
    }
    this.#deciding.delete(request_id);
    if (!controller.signal.aborted && !this.#over) this.say({ type: 'control_response', response });
  }

  async #ask(question: Question, signal: AbortSignal): Promise<PermissionResult> {
    const decide = this.#options.canUseTool;
    if (question.subtype !== 'can_use_tool' || !decide) {
      return { behavior: 'deny', message: 'Nobody is there to be asked, and neither the approval mode nor a list of tools allows it' };
    }
    const { tool_name, input, tool_use_id: toolUseID, title } = question;
    const result: unknown = await decide(tool_name, input, { toolUseID, title, signal });
    const behavior = (result as { behavior?: unknown } | undefined)?.behavior;
    if (behavior !== 'allow' && behavior !== 'deny') throw new TypeError("canUseTool must give { behavior: 'allow' } or { behavior: 'deny', message }");
    return result as PermissionResult;
  }
}
