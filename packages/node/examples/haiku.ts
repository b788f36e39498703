// Asks Gemini CLI for a file, shows what it does meanwhile, and what came of it:
//
//     node haiku.js "Write a haiku about rivers into haiku.txt"

import { AlhenaError, query } from 'alhena';

const prompt = process.argv[2] ?? 'Write a haiku about rivers into haiku.txt';
try {
  for await (const message of query(prompt, { approval: 'auto-edit', trust: true, timeout: 300_000 })) {
    if (message.type === 'assistant' && typeof message.message.content !== 'string') {
      for (const block of message.message.content) if (block.type === 'tool_use') console.log(`- ${block.name}`);
    } else if (message.type === 'result') {
      console.log(message.result);
      for (const file of message.files) console.log(`${file.change} ${file.path}`);
    }
  }
} catch (error) {
  if (!(error instanceof AlhenaError)) throw error;
  console.error(`${error.message}\n${error.hint}`);
  process.exitCode = 1;
}
