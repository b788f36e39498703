/** What a run says. The shapes are those that `alhena` prints; nothing is converted here. */

import type { Event, Failure, FileRecord, Message, Outcome, Status, Usage } from './alhena.js';

/** The run began. */
export interface SystemMessage {
  type: 'system';
  subtype: 'init';
  session_id: string;
  model: string;
}

/** What the model was told: a prompt, or the results of the tools that it called. */
export interface UserMessage {
  type: 'user';
  message: Message;
  session_id: string;
}

/** What the model said and did, in order: thoughts, text, tool calls. The results are in the user message after it. */
export interface AssistantMessage {
  type: 'assistant';
  message: Message;
  session_id: string;
}

/** A message as far as it has grown (`includePartialMessages`). The last one of each `id` is the one in the result's `messages`. */
export interface PartialMessage {
  type: 'partial';
  message: Message;
  session_id: string;
}

/** An event as it came (`includeEvents`). */
export interface StreamEvent {
  type: 'stream_event';
  event: Event;
}

/** How the run ended; always the last message. */
export interface ResultMessage {
  type: 'result';
  subtype: Status;
  is_error: boolean;
  /** What the model said after the last tool result. */
  result: string;
  /** To go on by `resume`. */
  session_id: string | null;
  duration_ms: number;
  usage: Usage;
  files: FileRecord[];
  warnings: string[];
  failure: Failure | undefined;
  /** The whole conversation of this run, each message whole, under the `id` under which it came. */
  messages: Message[];
  /** All of it. */
  outcome: Outcome;
}

export type QueryMessage = SystemMessage | UserMessage | AssistantMessage | PartialMessage | StreamEvent | ResultMessage;

/** What `alhena run --as message-lines` prints. */
export type MessageLine =
  | { type: 'event'; event: Event; message?: Message }
  | { type: 'message'; message: Message }
  | { type: 'result'; outcome: Outcome; messages: Message[] };

/** The last message of a run. */
export function resultOf(outcome: Outcome, messages: Message[]): ResultMessage {
  return {
    type: 'result',
    subtype: outcome.status,
    is_error: outcome.status !== 'success',
    result: outcome.final_text,
    session_id: outcome.session_id,
    duration_ms: outcome.duration_ms,
    usage: outcome.usage,
    files: outcome.files,
    warnings: outcome.warnings,
    failure: outcome.failure,
    messages,
    outcome,
  };
}
