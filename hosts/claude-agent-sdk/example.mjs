// One prompt for Gemini, by an unmodified Claude Agent SDK.
// CLAUDE_CLI is the path of a link to `alhena` under the name `claude`.

import { query } from "@anthropic-ai/claude-agent-sdk";

const options = {
  pathToClaudeCodeExecutable: process.env.CLAUDE_CLI,
  canUseTool: async (tool, input) =>
    tool === "Write" && input.file_path.endsWith(".txt")
      ? { behavior: "allow", updatedInput: input }
      : { behavior: "deny", message: `${tool} is not wanted here` },
};

async function* prompts() {
  yield {
    type: "user",
    message: { role: "user", content: "Write a greeting to greeting.txt" },
    parent_tool_use_id: null,
    session_id: "",
  };
}

for await (const message of query({ prompt: prompts(), options })) {
  if (message.type === "assistant") {
    for (const block of message.message.content) {
      if (block.type === "text") console.log(block.text);
    }
  } else if (message.type === "result") {
    console.log(`${message.usage.output_tokens} tokens, ${message.total_cost_usd.toFixed(6)} USD`);
  }
}
