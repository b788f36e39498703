/** The SDK's types: what goes in, and what comes out. Messages fit the SDK's own `UnifiedMessage`. */

import type { ChildProcess } from 'node:child_process';

import type { Event } from 'alhena';

/** A message in Claude's shape. */
export interface UnifiedMessage {
  /** The same from its first word to the result. */
  id: string;
  role: 'user' | 'assistant';
  /** Thoughts, then each call followed by its result, then text; a string when there are no blocks. */
  content: string | UnifiedContent[];
  /** Milliseconds since 1970; 0 when nobody knows. */
  timestamp: number;
  tool: 'gemini';
  model?: string;
  usage?: UnifiedUsage;
  /** The record as Gemini CLI wrote it; while a message grows, as it would. */
  _original: unknown;
}

export interface UnifiedUsage {
  /** The prompt, cached tokens included. */
  inputTokens: number;
  /** The answer, without thoughts. */
  outputTokens: number;
  totalTokens: number;
  cacheReadTokens?: number;
  thoughtTokens?: number;
}

export type UnifiedContent =
  | { type: 'thinking'; thinking: string }
  | { type: 'tool_use'; id: string; name: string; input: Record<string, unknown> }
  | ToolResult
  | { type: 'image'; source: { type: 'base64'; media_type: string; data: string } }
  | { type: 'text'; text: string };

export interface ToolResult {
  type: 'tool_result';
  tool_use_id: string;
  content: string;
  /** Whether the tool failed. A shell command that failed has an `exit_code` instead. */
  is_error: boolean;
  diff?: string;
  exit_code?: number;
  cancelled?: boolean;
}

/** What the model may do: nothing, edits, everything, or plans only. */
export type PermissionMode = 'default' | 'acceptEdits' | 'bypassPermissions' | 'plan';

/** Something that happened while it runs. */
export interface OnEventData {
  /** The line as alhena printed it. */
  raw: string;
  /** What happened; none where only the message was put right. */
  event: Event | null;
  /** The message that it added to, as far as it has grown; null when it added to none. */
  message: UnifiedMessage | null;
}

/**
 * The SDK's options for Gemini, and a few more. Callbacks are declared as methods, so that the SDK's own options for Gemini,
 * whose `onEvent` is declared as never called, fit.
 */
export interface ExecuteOptions {
  /** For the SDK's router. */
  tool?: 'gemini' | undefined;
  prompt: string;
  /** `default` when absent. */
  permissionMode?: PermissionMode | undefined;
  /** The current directory when absent. */
  workingDir?: string | undefined;
  model?: string | undefined;
  /** With `resume`: the session to go on with. Without: the id for the new one. Never a path. */
  sessionId?: string | undefined;
  /** Go on with `sessionId`, or with the latest session when there is none. */
  resume?: boolean | undefined;
  /** In milliseconds; no limit when absent. */
  timeout?: number | undefined;
  /** `data` is the JSON in the answer; its text when there is none. */
  json?: boolean | undefined;
  /** The answer has to fit this JSON schema, or the one in this file; `data` is then the value, and without one it has failed. */
  schema?: object | string | undefined;
  /** What Gemini CLI says on stderr is shown on this process's stderr, too. */
  verbose?: boolean | undefined;
  includeDirectories?: readonly string[] | undefined;
  allowedTools?: readonly string[] | undefined;
  disallowedTools?: readonly string[] | undefined;
  systemPrompt?: string | undefined;
  /** Variables beside those of this process. */
  env?: Readonly<Record<string, string | undefined>> | undefined;
  /** Stops the agent and everything that it started; the result then says so. */
  signal?: AbortSignal | undefined;
  /** The process that runs the agent; ended by SIGTERM, it stops the agent and everything that it started. */
  onStart?(process: ChildProcess): void;
  onEvent?(data: OnEventData): void;
  /** What alhena prints, as it comes: JSON lines. */
  onStdout?(chunk: string): void;
  onStderr?(chunk: string): void;
  /** What kept the run from beginning, or from being listened to. */
  onError?(error: Error): void;
  /** The exit code of the result. */
  onClose?(exitCode: number): void;
}

/** What an execution comes to. Never thrown: a failure is a result too. */
export interface ExecuteResult<T = string> {
  success: boolean;
  /** 0 exactly when it succeeded. */
  exitCode: number;
  /** Empty when there was no session. */
  sessionId: string;
  /** In milliseconds. */
  duration: number;
  /** The last ones of each `id` that were told. */
  messages: UnifiedMessage[];
  /** The answer: the value that fits the schema, text, or the JSON in it when that was asked for and found. */
  data: T;
  error?: string;
}

export interface LoadSessionOptions {
  /** The current directory when absent. */
  projectPath?: string | undefined;
  /** The most recent session when absent. Never a path. */
  sessionId?: string | undefined;
  env?: Readonly<Record<string, string | undefined>> | undefined;
}

export interface LoadMessagesOptions extends LoadSessionOptions {
  /** For the SDK's router. */
  tool?: 'gemini' | undefined;
}

export interface Capabilities {
  supportsSlashCommands: boolean;
  supportsModels: boolean;
  models: Array<{ id: string; name: string }>;
  supportsWebSearch: boolean;
  supportsThinking: boolean;
  /** Whether Gemini CLI was found, and where. */
  installed: boolean;
  cliPath?: string;
}
