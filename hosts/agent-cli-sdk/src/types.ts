/** The SDK's types: what goes in, and what comes out. */

import type { Block, Event, Message, MessageUsage } from './alhena.js';

/** A message in Claude's shape, with usage in snake case. */
export type UnifiedMessage = Message;
/** A block of a message. */
export type UnifiedContent = Block;

/** Usage in the spelling of the shipped SDK. */
export interface CamelUsage {
  inputTokens: number;
  outputTokens: number;
  totalTokens: number;
  cacheReadTokens?: number;
  thoughtTokens?: number;
}

/** A message with usage in camel case. */
export type CamelMessage = Omit<Message, 'usage'> & { usage?: CamelUsage };

/** How `usage` is spelled. */
export type UsageStyle = 'snake_case' | 'camelCase';

/** What the model may do: nothing, edits, everything, or plans only. */
export type PermissionMode = 'default' | 'acceptEdits' | 'bypassPermissions' | 'plan';

/** Something that happened while it runs. */
export interface StreamEvent {
  /** The line as alhena printed it. */
  raw: string;
  /** The same, parsed. */
  event: Event;
  /** What it adds to the conversation, Claude-shaped; absent when it adds nothing. */
  message?: StreamMessage;
}

/** A piece of the conversation as it arrives. */
export interface StreamMessage {
  role: 'user' | 'assistant';
  content: UnifiedContent[];
  timestamp: number;
  tool: 'gemini';
}

export interface ExecuteOptions {
  prompt: string;
  /** `default` when absent. */
  permissionMode?: PermissionMode;
  /** The current directory when absent. */
  workingDir?: string;
  model?: string;
  /** With `resume`: the session to go on with. Without: the id for the new one. */
  sessionId?: string;
  /** Go on with `sessionId`, or with the latest session when there is none. */
  resume?: boolean;
  /** In milliseconds; no limit when absent. */
  timeout?: number;
  /** `data` is the JSON in the answer; its text when there is none. */
  json?: boolean;
  includeDirectories?: string[];
  allowedTools?: string[];
  disallowedTools?: string[];
  systemPrompt?: string;
  env?: NodeJS.ProcessEnv;
  /** Stops the agent and everything that it started; the result then says so. */
  signal?: AbortSignal;
  /** How `usage` of messages is spelled; `snake_case` when absent. */
  usage?: UsageStyle;
  onEvent?: (event: StreamEvent) => void;
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
  messages: UnifiedMessage[];
  /** The answer: text, or the JSON in it when that was asked for and found. */
  data: T | string;
  error?: string;
}

export interface LoadMessagesOptions {
  /** The current directory when absent. */
  projectPath?: string;
  /** The most recent session when absent. */
  sessionId?: string;
  usage?: UsageStyle;
  env?: NodeJS.ProcessEnv;
}

export interface Capabilities {
  supportsSlashCommands: boolean;
  supportsModels: boolean;
  models: Array<{ id: string; name: string }>;
  supportsWebSearch: boolean;
  supportsThinking: boolean;
  /** Whether Gemini CLI was found, and where. */
  installed: boolean;
  cliPath: string | null;
}

export type { Block, Event, Message, MessageUsage };
