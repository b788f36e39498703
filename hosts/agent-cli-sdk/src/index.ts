/**
 * Gemini CLI for agent-cli-sdk, through `alhena`.
 *
 * Messages come in Claude's shape, so that a frontend that shows Claude's shows these too; the CLI's own record of each is
 * in its `_original`. All conversion is done by `alhena`.
 */

export { detectCli, getCapabilities } from './detect-cli.js';
export { execute } from './execute.js';
export { loadMessages, loadSession, parse } from './sessions.js';
export type {
  Capabilities,
  ExecuteOptions,
  ExecuteResult,
  LoadMessagesOptions,
  LoadSessionOptions,
  OnEventData,
  PermissionMode,
  ToolResult,
  UnifiedContent,
  UnifiedMessage,
  UnifiedUsage,
} from './types.js';
