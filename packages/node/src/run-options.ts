// Generated from the Rust types; do not edit. To renew: UPDATE_SCHEMAS=1 cargo test -p alhena-hosts --test it schemas

/** The actions that the model may take without asking. */
export type Approval = 'default' | 'suggest' | 'auto-edit' | 'auto_edit' | 'autoEdit' | 'acceptEdits' | 'yolo' | 'full_auto' | 'full-auto' | 'bypassPermissions' | 'plan';

/** Options of a run; all can be left out. */
export interface RunOptions {
  /** Work in this directory; the current one by default. */
  cwd?: string | undefined;
  /** The model. */
  model?: string | undefined;
  /** The actions that the model may take without asking. */
  approval?: Approval | undefined;
  /** Run in a folder that is not trusted; the value settings loads the folder's own settings too. */
  trust?: boolean | 'settings' | undefined;
  /** The sandbox: on, off, inherit, docker, podman, sandbox-exec, runsc or lxc. */
  sandbox?: boolean | string | undefined;
  /** More directories that the model may use. */
  includeDirs?: readonly string[] | undefined;
  /** Allow tools: a name, or run_shell_command(PREFIX). */
  allowTools?: readonly string[] | undefined;
  /** Deny tools. */
  denyTools?: readonly string[] | undefined;
  /** Policy files of Gemini CLI. */
  policies?: readonly string[] | undefined;
  /** MCP servers by name, as in Gemini CLI's settings, or a JSON file with them. */
  mcpServers?: Readonly<Record<string, object>> | string | undefined;
  /** Instructions for the model beside the prompt. */
  systemPrompt?: string | undefined;
  /** Add the instructions to the CLI's own, or replace them [default: append]. */
  systemPromptMode?: 'append' | 'replace' | undefined;
  /** Variables for `alhena` and Gemini CLI, beside those of this process. */
  env?: Readonly<Record<string, string | undefined>> | undefined;
  /** Continue a session: its id, or true for the latest of the folder. */
  resume?: string | true | undefined;
  /** The id for the new session. */
  sessionId?: string | undefined;
  /** Stop the run, or a turn of a conversation, after this time. It is then the only limit of time, unless the next two are given. `none` is no limit, also where a file with defaults has one. In milliseconds. */
  timeout?: number | 'none' | undefined;
  /** Stop when nothing arrives within this time; 60 s if no `timeout` is given. `none` is no limit, also where a file with defaults has one. In milliseconds. */
  firstEventTimeout?: number | 'none' | undefined;
  /** Stop after this long without output while no tool runs; 5 min if no `timeout` is given. `none` is no limit, also where a file with defaults has one. In milliseconds. */
  stallTimeout?: number | 'none' | undefined;
  /** Stop after this many turns of the model. */
  maxTurns?: number | undefined;
  /** How often a failing request to the API is tried. */
  maxAttempts?: number | undefined;
  /** Stop after this many tokens; `alhena help budget` explains it. */
  maxTokens?: number | undefined;
  /** Stop once the run has cost this many US dollars. */
  maxCost?: number | undefined;
  /** Stop after this many model calls. */
  maxCalls?: number | undefined;
  /** Require an answer that fits this JSON schema, or the one in this file; the outcome then has it as `data`. */
  schema?: object | string | undefined;
  /** How often the model may try again when its answer does not fit [default: 2]. */
  schemaAttempts?: number | undefined;
  /** Keep everything that the CLI wrote in this directory, which must not exist, for `alhena parse`. */
  record?: string | undefined;
  /** Use the files with defaults; `alhena help config` explains them. */
  useConfig?: boolean | undefined;
  /** More arguments for Gemini CLI itself. */
  extraArgs?: readonly string[] | undefined;
  /** Use the scripted model on this machine instead of Gemini; with a file, that scenario. */
  offline?: boolean | string | undefined;
  /** The Gemini CLI to run: a path, a command on PATH, or a version, which is fetched if it is not there. */
  gemini?: string | undefined;
}

/** The option in place of each setting that errors of `alhena` name. */
export const OPTION_OF: Readonly<Record<string, string>> = {
  prompt: 'prompt',
  prompt_file: 'promptFile',
  prompt_by: 'promptBy',
  transport: 'transport',
  agent_command: 'agentCommand',
  offline: 'offline',
  cassette: 'cassette',
  cassette_mode: 'cassetteMode',
  dir: 'cwd',
  gemini: 'gemini',
  model: 'model',
  approval: 'approval',
  trust: 'trust',
  sandbox: 'sandbox',
  include_dir: 'includeDirs',
  allow_tool: 'allowTools',
  deny_tool: 'denyTools',
  policy: 'policies',
  mcp_server: 'mcpServers',
  system_prompt: 'systemPrompt',
  system_prompt_file: 'systemPrompt',
  system_prompt_mode: 'systemPromptMode',
  env: 'env',
  resume: 'resume',
  allow: 'allow',
  deny: 'deny',
  ask: 'ask',
  rules: 'rules',
  permission_timeout: 'permissionTimeout',
  session_id: 'sessionId',
  timeout: 'timeout',
  first_event_timeout: 'firstEventTimeout',
  stall_timeout: 'stallTimeout',
  max_turns: 'maxTurns',
  max_attempts: 'maxAttempts',
  max_tokens: 'maxTokens',
  max_cost: 'maxCost',
  max_calls: 'maxCalls',
  on_rate_limit: 'onRateLimit',
  prices: 'prices',
  schema: 'schema',
  schema_attempts: 'schemaAttempts',
  hook: 'hook',
  hook_timeout: 'hookTimeout',
  record: 'record',
  no_config: 'useConfig',
  args: 'extraArgs',
};
