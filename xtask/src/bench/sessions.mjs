// A plain loader: JSON.parse per file or line, the CLI's fold, and the document's transformation into messages.
import { readFileSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';

const NAMES = { read_file: 'Read', write_file: 'Write', replace: 'Edit', list_directory: 'Glob', run_shell_command: 'Bash', google_web_search: 'WebSearch', grep_search: 'Grep', glob: 'Glob' };

function input(name, args) {
  switch (name) {
    case 'read_file': return { file_path: args.absolute_path || args.file_path };
    case 'replace': return { file_path: args.file_path, old_string: args.old_string, new_string: args.new_string };
    case 'run_shell_command': return { command: args.command, description: args.description };
    case 'grep_search': return { pattern: args.pattern, path: args.dir_path };
    default: return args;
  }
}

function textOf(content) {
  if (typeof content === 'string') return content;
  return (content || []).map((part) => part.text ?? '').join('');
}

function parse(message) {
  const content = [];
  for (const thought of message.thoughts ?? []) content.push({ type: 'thinking', thinking: `${thought.subject}: ${thought.description}` });
  for (const call of message.toolCalls ?? []) {
    content.push({ type: 'tool_use', id: call.id, name: NAMES[call.name] ?? call.name, input: input(call.name, call.args) });
    if (call.result && call.result.length > 0) {
      const response = call.result[0].functionResponse.response;
      content.push({ type: 'tool_result', tool_use_id: call.id, content: response.output || response.error || '', is_error: call.status === 'error' || !!response.error, diff: call.resultDisplay?.fileDiff });
    }
  }
  const text = textOf(message.content);
  if (text.trim()) content.push({ type: 'text', text });
  return { id: message.id, role: message.type === 'user' ? 'user' : 'assistant', content: content.length > 0 ? content : text,
    timestamp: new Date(message.timestamp).getTime(), tool: 'gemini', model: message.model,
    usage: message.tokens ? { input_tokens: message.tokens.input, output_tokens: message.tokens.output, total_tokens: message.tokens.total } : undefined,
    _original: message };
}

function isSaid(message) {
  if (message.type !== 'user') return message.type === 'gemini';
  if (Array.isArray(message.content) && message.content.length > 0 && message.content.every((part) => part.functionResponse)) return false;
  return !textOf(message.content).trimStart().startsWith('<session_context>');
}

function fold(text) {
  const messages = new Map();
  for (const line of text.split('\n')) {
    if (!line.trim()) continue;
    let record;
    try { record = JSON.parse(line); } catch { continue; }
    if (typeof record.$rewindTo === 'string') messages.clear();
    else if (typeof record.id === 'string') messages.set(record.id, record);
    else if (record.$set?.messages) { messages.clear(); for (const message of record.$set.messages) messages.set(message.id, message); }
  }
  return [...messages.values()];
}

const counts = { messages: 0, blocks: 0, text: 0, results: 0 };
const started = process.hrtime.bigint();
const root = join(process.argv[2], '.gemini/tmp');
for (const project of readdirSync(root)) {
  const chats = join(root, project, 'chats');
  for (const name of readdirSync(chats)) {
    const text = readFileSync(join(chats, name), 'utf8');
    const records = name.endsWith('.json') ? JSON.parse(text).messages : fold(text);
    for (const message of records.filter(isSaid).map(parse)) {
      counts.messages += 1;
      if (typeof message.content === 'string') continue;
      counts.blocks += message.content.length;
      for (const block of message.content) {
        if (block.type === 'text') counts.text += Buffer.byteLength(block.text);
        if (block.type === 'tool_result') counts.results += Buffer.byteLength(block.content);
      }
    }
  }
}
const seconds = Number(process.hrtime.bigint() - started) / 1e9;
console.log(seconds, counts.messages, counts.blocks, counts.text, counts.results);
