/** Whether a tool may be used: what a `Client` asks, and what is answered. Names that the Claude Agent SDK has, too, mean the same. */

/** What else is known of a call. */
export interface ToolPermissionContext {
  /** The `id` of its `tool_use` block. */
  toolUseID: string;
  /** What Gemini CLI calls it, for people. */
  title: string;
  /** Aborted when the answer is of no use any more. */
  signal: AbortSignal;
}

export type PermissionResult =
  | {
      behavior: 'allow';
      /** And the same again, without a question, as long as the conversation lasts: this command, these files, this tool of a server. */
      remember?: boolean;
    }
  | {
      behavior: 'deny';
      /** Why; the model is told. */
      message: string;
      /** Whether the turn ends here. */
      interrupt?: boolean;
    };

/** Gets the tool by Claude's name, its arguments in Claude's shape, and what else is known. One that fails has said no. */
export type CanUseTool = (
  toolName: string,
  input: Record<string, unknown>,
  context: ToolPermissionContext,
) => PermissionResult | Promise<PermissionResult>;

/** The question, as `alhena chat --control` asks it. */
export interface Question {
  subtype: string;
  tool_name: string;
  input: Record<string, unknown>;
  tool_use_id: string;
  title: string;
}
