/**
 * Gemini CLI for agent-cli-sdk, through `alhena`.
 *
 * Messages come in Claude's shape, so that a frontend that shows Claude's shows these too; the CLI's own record of each is
 * in its `_original`.
 */

export { detectCli, getCapabilities } from './detect-cli.js';
export { execute } from './execute.js';
export { extractJson } from './json.js';
export { loadMessages } from './load-messages.js';
export { camelMessage, camelUsage } from './usage.js';
export type {
  CamelMessage,
  CamelUsage,
  Capabilities,
  ExecuteOptions,
  ExecuteResult,
  LoadMessagesOptions,
  PermissionMode,
  StreamEvent,
  StreamMessage,
  UnifiedContent,
  UnifiedMessage,
  UsageStyle,
} from './types.js';
