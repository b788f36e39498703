// Runs one prompt and shows it as it goes: `node dist/examples/basic.js "Explain this project"`.

import { execute } from '../src/index.js';

const result = await execute({
  prompt: process.argv[2] ?? 'Write a haiku about rivers into haiku.txt',
  permissionMode: 'acceptEdits',
  onEvent: ({ message }) => {
    for (const block of message?.role === 'assistant' ? message.content : []) {
      if (block.type === 'text') process.stdout.write(block.text);
      if (block.type === 'tool_use') console.log(`[${block.name}]`);
    }
  },
});
console.log(`\n${result.success ? 'done' : `failed: ${result.error}`}, ${result.messages.length} messages, session ${result.sessionId}`);
process.exitCode = result.success ? 0 : 1;
