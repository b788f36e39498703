// Drives the real SDK through one scene, and prints what it saw as lines of JSON.

import { createSdkMcpServer, query } from "@anthropic-ai/claude-agent-sdk";

const show = (kind, what) => console.log(JSON.stringify({ kind, ...what }));
const executable = { pathToClaudeCodeExecutable: process.env.CLAUDE_CLI };
const user = (content) => ({
  type: "user",
  message: { role: "user", content },
  parent_tool_use_id: null,
  session_id: "",
});

async function watch(conversation, look = () => {}) {
  for await (const message of conversation) {
    show(message.type, { message });
    await look(message, conversation);
  }
}

/** Prompts one after the other, each when the one before has its result. */
function inTurn(prompts) {
  const given = prompts.map(() => Promise.withResolvers());
  async function* all() {
    for (const [at, prompt] of prompts.entries()) {
      yield user(prompt);
      await given[at].promise;
    }
  }
  let results = 0;
  return { prompt: all(), ended: () => given[results++]?.resolve() };
}

const asked = (answer) => async (tool, input, context) => {
  show("asked", { tool, input, id: context.toolUseID });
  return answer(input);
};

const scenes = {
  one: () => watch(query({ prompt: "Say hello", options: { ...executable, model: "gemini-2.5-flash" } })),
  twoTurns: () => {
    const { prompt, ended } = inTurn(["Say hello", "Say it again"]);
    const look = async (message, conversation) => {
      if (message.type !== "result") return;
      await conversation.setModel("gemini-2.5-pro");
      ended();
    };
    return watch(query({ prompt, options: { ...executable, model: "gemini-2.5-flash" } }), look);
  },
  allow: () => scenes.write((input) => ({ behavior: "allow", updatedInput: input })),
  deny: () => scenes.write(() => ({ behavior: "deny", message: "Not today" })),
  write: (answer) => {
    const { prompt, ended } = inTurn(["Write the note"]);
    const look = (message) => message.type === "result" && ended();
    return watch(query({ prompt, options: { ...executable, canUseTool: asked(answer) } }), look);
  },
  interrupt: () => {
    const { prompt, ended } = inTurn(["Slow", "Say hello"]);
    const look = async (message, conversation) => {
      if (message.type === "stream_event" && message.event.delta?.text === "Wait") await conversation.interrupt();
      if (message.type === "result") ended();
    };
    return watch(query({ prompt, options: { ...executable, includePartialMessages: true } }), look);
  },
  edits: () => {
    const { prompt, ended } = inTurn(["Write the note", "Write the note"]);
    const look = async (message, conversation) => {
      if (message.type !== "result") return;
      await conversation.setPermissionMode("acceptEdits");
      ended();
    };
    return watch(query({ prompt, options: executable }), look);
  },
  hooks: () => {
    const { prompt, ended } = inTurn(["Read the note and write and run"]);
    const look = (message) => message.type === "result" && ended();
    const hook = async (input) => {
      const event = input.hook_event_name;
      show("hook", { event, tool: input.tool_name, input });
      const decided = (more) => ({ hookSpecificOutput: { hookEventName: event, ...more } });
      if (event === "UserPromptSubmit") return decided({ additionalContext: "The note is blue." });
      if (event === "PreToolUse" && input.tool_name === "Bash") {
        return decided({ permissionDecision: "deny", permissionDecisionReason: "No shells" });
      }
      if (event === "PreToolUse") return decided({ permissionDecision: "allow" });
      if (event === "Stop" && !input.stop_hook_active) return { decision: "block", reason: "Say hello" };
      return {};
    };
    const events = ["PreToolUse", "PostToolUse", "UserPromptSubmit", "Stop"];
    const hooks = Object.fromEntries(events.map((event) => [event, [{ hooks: [hook] }]]));
    return watch(query({ prompt, options: { ...executable, hooks } }), look);
  },
  values: async () => {
    for (const kind of ["integer", "boolean"]) {
      const schema = { type: "object", properties: { n: { type: kind } }, required: ["n"] };
      const outputFormat = { type: "json_schema", schema };
      try {
        await watch(query({ prompt: "Count", options: { ...executable, model: "gemini-2.5-flash", outputFormat } }));
      } catch (error) {
        show("error", { text: String(error) });
      }
    }
  },
  impossible: async () => {
    const server = createSdkMcpServer({ name: "calc", tools: [] });
    for (const more of [
      { mcpServers: { calc: server } },
      { hooks: { PreCompact: [{ hooks: [async () => ({})] }] } },
      { outputFormat: { type: "json_schema", schema: { type: "strong" } } },
      { permissionMode: "auto" },
    ]) {
      try {
        await watch(query({ prompt: "Say hello", options: { ...executable, ...more } }));
      } catch (error) {
        show("error", { text: String(error) });
      }
    }
  },
};

try {
  await scenes[process.argv[2]]();
} catch (error) {
  show("raised", { text: String(error) });
}
