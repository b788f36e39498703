// Generated from the Rust types; do not edit. To renew: UPDATE_SCHEMAS=1 cargo test -p alhena-hosts --test it schemas

/** What became of a file. */
export type Change =
  "created"
  | "modified"
  | "deleted";

/** A shell command that the agent ran. */
export interface CommandRun {
  /** The call's id. */
  call_id: string;
  /** The command line. */
  command: string;
  /** Its exit code, where known. */
  exit_code?: number;
  /** What it printed, cut at 64 KiB. */
  output?: string;
}

/** Tokens of an answer that are not in it. */
export interface CompletionDetails {
  /** Thoughts. */
  reasoning: number;
}

/** A failed run's reason. The only failure type that leaves the library for what an agent did. */
export interface Failure {
  /** What kind of failure it is; the exit code follows from it. */
  kind: FailureKind;
  /** What happened, for people. */
  message: string;
  /** What to do about it. */
  hint: string;
  /** The CLI's exit code. */
  exit_code?: number;
  /** The status of the API's answer. */
  http_status?: number;
  /** How long the API asked to wait. */
  retry_after_ms?: number;
  /** Whether it is a daily quota that ran out: waiting a minute does not help. */
  daily_quota?: boolean;
  /** What was wrong with the last answer that had to fit a schema, each with its path. */
  errors?: Array<string>;
  /** That answer, cut at 64 KiB. */
  answer?: string;
  /** The last lines of standard error. */
  stderr?: string;
}

/** The kinds of failure. */
export type FailureKind =
  "not_installed"
  | "auth"
  | "untrusted"
  | "input"
  | "config"
  | "sandbox"
  | "turn_limit"
  | "disk_full"
  | "rate_limited"
  | "budget"
  | "api"
  | "invalid_response"
  | "timeout"
  | "stalled"
  | "cancelled"
  | "crashed"
  | "protocol"
  | "schema";

/** A file that changed during the run. */
export interface FileRecord {
  /** As the tool or the scan named it. */
  path: string;
  /** What became of it. */
  change: Change;
  /** The tool that claims it. */
  tool?: string;
  /** Whether a tool of the run says that it wrote the file. False: it changed during the run, by it or by others. */
  claimed: boolean;
  /** Whether the disk agrees. */
  verified: boolean;
  /** The change as a unified diff, where known. */
  diff?: string;
}

/** What happened on the way, for assertions. */
export interface Metadata {
  /** The session, as beside it: assertions see only this. */
  sessionId?: string;
  /** Every tool call, in order. */
  toolCalls: Array<ToolCall>;
  /** Files that changed. */
  files: Array<FileRecord>;
  /** Shell commands that ran. */
  commands: Array<CommandRun>;
  /** The models that answered. */
  models: Array<string>;
  /** How long the run took. */
  durationMs: number;
  /** The CLI's exit code. */
  exitCode?: number;
  /** What to know beside the answer. */
  warnings?: Array<string>;
  /** Present when `cost` is only what it was at least. */
  costIsLowerBound?: boolean;
  /** What went wrong, in full. */
  failure?: Failure;
}

/** What a call returns. */
export interface ProviderResponse {
  /**
   * The model's answer after its last tool result, or the value that fits the schema; absent when the call failed. Of an
   * answer that was cut off it is the part that came, and `finishReason` says so.
   */
  output?: unknown;
  /** Why the answer ended, in promptfoo's words: `stop`, `length`, `content_filter`, or another of the API's in lower case. */
  finishReason?: string;
  /** Why the call failed. */
  error?: string;
  /** Tokens; absent when the CLI gave no statistics. */
  tokenUsage?: TokenUsage;
  /** In dollars, where the price file names every model that was used. */
  cost?: number;
  /** The session, to resume by. */
  sessionId?: string;
  /** What happened on the way. */
  metadata: Metadata;
  /** The CLI's json report as text. */
  raw: string;
}

/** Tokens as promptfoo counts them. */
export interface TokenUsage {
  /** Tokens sent, over all models. */
  prompt: number;
  /** Tokens of answers, without thoughts. */
  completion: number;
  /** All tokens. */
  total: number;
  /** Those of the prompt that came from the API's cache. */
  cached?: number;
  /** What the tokens beside the answer's were for. */
  completionDetails?: CompletionDetails;
}

/** One tool call, in the shape of promptfoo's own agent providers. */
export interface ToolCall {
  /** Ties call and result together. */
  id: string;
  /** The CLI's name of the tool. */
  name: string;
  /** Its arguments; `null` when they were too large to keep. */
  input: unknown;
  /** What it printed. */
  output?: string;
  /** Whether it failed. A call without a result did not. */
  is_error: boolean;
}
