// Runs one prompt and shows it as it goes: `node basic.js "Explain this project"`.

import { execute } from '@alhena/agent-cli-sdk-gemini';

const result = await execute({
  prompt: process.argv[2] ?? 'Write a haiku about rivers into haiku.txt',
  permissionMode: 'acceptEdits',
  onEvent: ({ event }) => {
    if (event?.type === 'text') process.stdout.write(event.delta);
    if (event?.type === 'tool_call') console.log(`[${event.claude_name}]`);
  },
});
console.log(`\n${result.success ? 'done' : `failed: ${result.error}`}, ${result.messages.length} messages, session ${result.sessionId}`);
process.exitCode = result.success ? 0 : 1;
