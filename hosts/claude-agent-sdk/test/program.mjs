// Drives the real SDK through one scene, and prints what it saw as lines of JSON.

import { query } from "@anthropic-ai/claude-agent-sdk";

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
};

try {
  await scenes[process.argv[2]]();
} catch (error) {
  show("raised", { text: String(error) });
}
