/**
 * Gemini CLI as a part that other software can rely on.
 *
 * Everything is done by the program `alhena`, which comes with the package: it runs Gemini CLI, knows whether it really
 * succeeded, and leaves no process behind. This module needs nothing but Node.
 */

export { findBinary } from './binary.js';
export { Client, type ClientOptions } from './client.js';
export { AlhenaError, BinaryNotFoundError, CommandFailedError, RunFailedError, UnsupportedPlatformError, type ErrorKind } from './errors.js';
export type {
  AssistantMessage,
  PartialMessage,
  QueryMessage,
  ResultMessage,
  StreamEvent,
  SystemMessage,
  UserMessage,
} from './messages.js';
export type { Approval, Options } from './options.js';
export type { CanUseTool, PermissionResult, ToolPermissionContext } from './permissions.js';
export { ask, query, type QueryOptions } from './query.js';
export { detect, listSessions, loadMessages, type Detected, type SessionInfo, type Where } from './sessions.js';
export type * from './alhena.js';
