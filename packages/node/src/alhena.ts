// Generated from the Rust types; do not edit. To renew: UPDATE_SCHEMAS=1 cargo test -p alhena-hosts --test it schemas

/** A block of a message. */
export type Block =
  {
    type: "thinking";
    /** `subject: description`. */
    thinking: string;
  }
  | {
    type: "tool_use";
    /** Ties the result to it. */
    id: string;
    /** Claude's name of the tool. */
    name: string;
    /** The arguments as Claude's tool takes them. */
    input: unknown;
  }
  | ToolResult & {
    type: "tool_result";
  }
  | {
    type: "image";
    /** The image itself. */
    source: ImageSource;
  }
  | {
    type: "text";
    /** As it was written. */
    text: string;
  };

/** Tokens of one call of a model. */
export interface CallUsage {
  /**
   * The number of the call in the run, from 1. Absent from one last event with the tokens that no source attributes to a
   * single call.
   */
  call?: number;
  /** Tokens sent, cached ones included. */
  prompt: number;
  /** Those of `prompt` that came from the cache. */
  cached: number;
  /** Tokens of the answer, without thoughts. */
  output: number;
  /** Tokens of thoughts. The stream leaves them out; there it is what `total` has left over (derived). */
  thoughts: number;
  /** Tokens of tool prompts. */
  tool: number;
  /** All together, as the API counted. */
  total: number;
  /** The same six figures by the model's name. */
  models: Record<string, Tokens>;
  /** What it cost in US dollars, where that is known: every model has a price, and somebody computed it. */
  cost_usd?: number;
}

/** How many calls, how long they took, and what they cost. */
export interface Calls {
  /** How many, failed ones included. */
  requests: number;
  /** How many failed. */
  errors: number;
  /** How long they took together. */
  latency_ms: number;
  /** Tokens of those that were answered. */
  tokens: Tokens;
}

/** What became of a file. */
export type Change =
  "created"
  | "modified"
  | "deleted";

/** What kind of thing a tool does. */
export type Class =
  "command"
  | "file_read"
  | "file_write"
  | "ask_user"
  | "search_fetch"
  | "planning"
  | "agent"
  | "mcp"
  | "unknown";

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

/** What a message says: blocks, or a bare string when there are none. */
export type Content =
  string
  | Array<Block>;

/** One thing that happened in a run, in the order in which it became known. */
export type Event =
  {
    /** From 0, without gaps. */
    seq: number;
    /** When: the CLI's own time where it gave one, otherwise when Alhena saw it. */
    at: Timestamp;
    /** Who says so. */
    source: Source;
  } & (
  | {
    type: "started";
    /** The session's id. */
    session_id: string;
    /** The model asked for: often the alias `auto`, and not the model that answers. */
    model: string;
  }
  | {
    type: "prompt";
    /** All of it, standard input and hook context included. */
    text: string;
  }
  | {
    type: "text";
    /** The piece. */
    delta: string;
  }
  | {
    type: "thinking";
    /** Its heading. */
    subject: string;
    /** What it says. */
    text: string;
  }
  | {
    type: "tool_call";
    /** Ties the result to the call. Opaque. */
    id: string;
    /** The CLI's name of the tool. */
    name: string;
    /** What kind of tool it is. */
    class: Class;
    /** What Claude calls it, or the same name where it has no such tool. */
    claude_name: string;
    /** The arguments as the model gave them. */
    input: unknown;
  }
  | {
    type: "tool_result";
    /** The call's id. */
    id: string;
    /** The tool's name; empty when the call was never seen. */
    name: string;
    /** False when the CLI says error, and when a command is known to have failed or been cancelled. */
    ok: boolean;
    /** What it printed: from the stream only what the CLI displays. */
    output?: string;
    /** Why it failed. */
    error?: ToolError;
    /** The exit code of a shell command, where known. */
    exit_code?: number;
    /** Whether it was cancelled, where known; the stream calls that a success. */
    cancelled?: boolean;
  }
  | FileChange & {
    type: "file_change";
  }
  | {
    type: "command";
    /** The call's id. */
    call_id: string;
    /** The command line. */
    command: string;
    /** What it printed. */
    output?: string;
    /** Its exit code, where known. */
    exit_code?: number;
  }
  | CallUsage & {
    type: "usage";
  }
  | {
    type: "warning";
    /** For people. */
    message: string;
  }
  | {
    type: "error";
    /** For people. */
    message: string;
  }
  | {
    type: "malformed";
    /** Its beginning, safe to print. */
    sample: string;
    /** Its size. */
    bytes: number;
  }
  | {
    type: "unknown";
    /** The line. */
    raw: unknown;
  }
  | {
    type: "finished";
    /** How it ended. */
    outcome: Outcome;
  }
  | {
    type: "permission";
    /** The question. */
    permission: Permission;
  }
  | {
    type: "permission_resolved";
    /** The id of the question. */
    id: string;
    /** The decision. */
    decision: Resolution;
    /** The reason, where one was given. */
    reason?: string;
  }
  | {
    type: "turn_finished";
    /** How the turn ended. */
    outcome: Outcome;
  }
  | {
    type: "closed";
    /** Things to know that are no failure. */
    warnings: Array<string>;
    /** Why it ended, unless somebody closed it. */
    failure?: Failure;
  }
  );

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

/** One change of a file. */
export interface FileChange {
  /** As the tool or the scan named it. */
  path: string;
  /** What became of it. */
  change: Change;
  /** The tool that says so; none when only the disk does. */
  tool?: string;
  /** The call that says so. */
  call_id?: string;
  /** The change as a unified diff, where known. */
  diff?: string;
  /** Whether the disk agrees. */
  verified: boolean;
}

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

/** Where an image is. */
export type ImageSource =
  {
    type: "base64";
    /** Such as `image/png`. */
    media_type: string;
    /** Its bytes. */
    data: string;
  }
  | {
    type: "url";
    /** The address. */
    url: string;
  };

/** Output that was no event. */
export interface Malformed {
  /** How many lines. */
  lines: number;
  /** How many bytes. */
  bytes: number;
}

/** One message. */
export interface Message {
  /** The record's id. */
  id: string;
  /** Who speaks. */
  role: Role;
  /** What is said. */
  content: Content;
  /** When, in milliseconds since 1970; null when the record does not say it. */
  timestamp: number | null;
  /** Always `gemini`. */
  tool: ToolName;
  /** The model that answered. */
  model?: string;
  /** What the answer cost. */
  usage?: MessageUsage;
  /** The record as it stood; null for a message of tool results, which are in the record of their calls. */
  _original: unknown;
}

/** What one answer cost. */
export interface MessageUsage {
  /** The prompt, cached tokens included. */
  input_tokens: number;
  /** The answer, without thoughts. */
  output_tokens: number;
  /** All together. */
  total_tokens: number;
  /** The part of the prompt that came from the cache, where known. */
  cached_tokens?: number;
  /** Thoughts, where known. */
  thought_tokens?: number;
}

/** Calls of one model. */
export interface ModelCalls {
  /** How many, failed ones included. */
  requests: number;
  /** How many failed. */
  errors: number;
  /** How long they took together. */
  latency_ms: number;
  /** Tokens of those that were answered. */
  tokens: Tokens;
  /** How often each kind of error came. */
  errors_by_type: Record<string, number>;
  /** What they were for: `main`, `utility_router`, `subagent` and others. */
  roles: Record<string, Calls>;
}

/** How a run ended. */
export interface Outcome {
  status: Status;
  text: string;
  final_text: string;
  text_truncated?: boolean;
  session_id: string | null;
  models: Array<string>;
  files: Array<FileRecord>;
  commands: Array<CommandRun>;
  usage: Usage;
  cost_usd?: number;
  cost_is_lower_bound?: boolean;
  model_calls: number;
  statistics?: Statistics;
  data?: unknown;
  tool_calls: number;
  duration_ms: number;
  warnings: Array<string>;
  malformed: Malformed;
  exit_code: number | null;
  failure?: Failure;
  /**
   * Why the model's last complete answer ended, in the API's own word: `STOP`, `MAX_TOKENS`, `SAFETY`; null if it is not
   * known. Only `STOP` is normal.
   */
  finish_reason: string | null;
}

/** A question of an agent that waits for a decision. */
export interface Permission {
  /** Its id in the conversation. */
  id: string;
  /** The tool. */
  tool: string;
  /** The agent's own title of the call, for people. */
  title: string;
  /** The command that would run. */
  command?: string;
  /** True if the command would run in the background. */
  background?: boolean;
  /** The other folder in which the command would run, in the agent's own words; "always" is then not remembered. */
  elsewhere?: string;
  /** The change that would be made, as a unified diff. */
  diff?: string;
  /** The file that would change. */
  path?: string;
  /** The arguments of the tool. */
  input?: unknown;
  /** When the agent asked. */
  asked_at: Timestamp;
}

/** How a question of an agent ended. */
export type Resolution =
  "allow"
  | "always"
  | "reject"
  | "withdrawn";

/** Who speaks. */
export type Role =
  "user"
  | "assistant";

/** Where an event comes from. */
export type Source =
  "stream"
  | "session"
  | "telemetry"
  | "derived";

/** Measured by the CLI itself. */
export interface Statistics {
  /** Calls of the API, by model. */
  models: Record<string, ModelCalls>;
  /** Tools that ran, by name. */
  tools: Record<string, ToolRuns>;
}

/** The verdict on a run. */
export type Status =
  "success"
  | "failed"
  | "cancelled"
  | "timeout"
  | "stalled";

/** UTC, ISO-8601, with milliseconds. */
export type Timestamp =
  string;

/** Token counts of one model, or of a whole run. */
export interface Tokens {
  /** Tokens sent, cached ones included. */
  prompt: number;
  /** Those of `prompt` that came from the cache. */
  cached: number;
  /** Tokens of the answer, without thoughts. */
  output: number;
  /** Tokens of thoughts. The stream leaves them out; there it is what `total` has left over (derived). */
  thoughts: number;
  /** Tokens of tool prompts. */
  tool: number;
  /** All together, as the API counted. */
  total: number;
}

/** Why a tool failed, in the CLI's own words. */
export interface ToolError {
  /** The CLI's name of the failure, such as `tool_not_registered`. */
  type: string;
  /** For people. */
  message: string;
}

/** The program that wrote the message. */
export type ToolName =
  "gemini";

/** What a tool gave back. */
export interface ToolResult {
  /** The call's id. */
  tool_use_id: string;
  /** Its output, or its error, or nothing. */
  content: string;
  /** Whether it failed: false exactly where the event of the result says `ok`. */
  is_error: boolean;
  /** The change of a file as a unified diff; with `is_error` or `cancelled` it is what was proposed. */
  diff?: string;
  /** The exit code of a shell command, where known. */
  exit_code?: number;
  /** True when it was cancelled. */
  cancelled?: boolean;
}

/** Runs of one tool. */
export interface ToolRuns {
  /** How long they took together. */
  duration_ms: number;
  /** How often each decision was made on it: `accept`, `reject`, `modify`, `auto_accept`. */
  decisions: Record<string, number>;
}

/** What a run used, in all and by model. */
export interface Usage {
  /** Tokens sent, cached ones included. */
  prompt: number;
  /** Those of `prompt` that came from the cache. */
  cached: number;
  /** Tokens of the answer, without thoughts. */
  output: number;
  /** Tokens of thoughts. The stream leaves them out; there it is what `total` has left over (derived). */
  thoughts: number;
  /** Tokens of tool prompts. */
  tool: number;
  /** All together, as the API counted. */
  total: number;
  /** The same six figures by the model's name. */
  models: Record<string, Tokens>;
  /** What it cost in US dollars, where that is known: every model has a price, and somebody computed it. */
  cost_usd?: number;
}
