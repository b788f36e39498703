// What agent-cli-sdk declares (its packages/agent-cli-sdk/src: types/unified, index, gemini/execute, utils/getCapabilities),
// as far as this package has to fit it.

import type { ChildProcess } from 'node:child_process';

export interface UnifiedMessage {
  id: string;
  role: 'user' | 'assistant' | 'system';
  content: string | UnifiedContent[];
  timestamp: number;
  tool: 'claude' | 'codex' | 'gemini' | 'cursor';
  model?: string;
  usage?: {
    inputTokens: number;
    outputTokens: number;
    totalTokens: number;
    cacheCreationTokens?: number;
    cacheReadTokens?: number;
  };
  _original: unknown;
}

export type UnifiedContent =
  | { type: 'text'; text: string }
  | { type: 'thinking'; thinking: string }
  | { type: 'tool_use'; id: string; name: string; input: Record<string, unknown> }
  | { type: 'tool_result'; tool_use_id: string; content?: unknown; is_error?: boolean }
  | { type: 'slash_command'; command: string; message?: string; args?: string }
  | { type: 'image'; source: { type: 'base64'; data: string; media_type: string } };

export type PermissionMode = 'default' | 'plan' | 'acceptEdits' | 'bypassPermissions';

export interface BaseExecuteOptions<TOnEventData, TOnStdoutData> {
  prompt: string;
  workingDir?: string;
  timeout?: number;
  verbose?: boolean;
  json?: boolean;
  sessionId?: string;
  model?: string;
  permissionMode?: PermissionMode;
  onStart?: (process: ChildProcess) => void;
  onEvent?: (data: TOnEventData) => void;
  onStdout?: (data: TOnStdoutData) => void;
  onStderr?: (chunk: string) => void;
  onError?: (error: Error) => void;
  onClose?: (exitCode: number) => void;
}

export interface GeminiSpecificOptions extends BaseExecuteOptions<never, string> {
  tool: 'gemini';
  resume?: boolean;
}

/** What it hands to a listener of Claude's events. */
export interface OnEventData {
  raw: string;
  event: unknown;
  message: UnifiedMessage | null;
}

export interface ExecuteResult<T = string> {
  success: boolean;
  exitCode: number;
  sessionId: string;
  duration: number;
  messages: UnifiedMessage[];
  data: T;
  error?: string;
}

export interface LoadMessagesOptions {
  tool: 'gemini';
  sessionId: string;
  projectPath?: string;
}

export interface AgentCapabilities {
  supportsSlashCommands: boolean;
  supportsModels: boolean;
  models: Array<{ id: string; name: string }>;
  installed: boolean;
  cliPath?: string;
}

export interface Sdk {
  execute<T = string>(options: GeminiSpecificOptions): Promise<ExecuteResult<T>>;
  loadMessages(options: LoadMessagesOptions): Promise<UnifiedMessage[]>;
  loadSession(options: { sessionId?: string; projectPath?: string }): Promise<UnifiedMessage[]>;
  parse(record: { id: string; timestamp: string; type: 'user' | 'gemini'; content: string }): UnifiedMessage;
  getCapabilities(agentName: 'gemini'): Promise<AgentCapabilities>;
  detectCli(): Promise<string | null>;
}
