// The package without the CLI: `npm run build && npm test`.

import assert from 'node:assert/strict';
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';

import { camelUsage, detectCli, execute, extractJson, getCapabilities, loadMessages, type StreamEvent } from '../src/index.js';
import { commandLine } from '../src/execute.js';

let scratch: string;
let env: NodeJS.ProcessEnv;

const EVENTS = [
  { seq: 0, at: '2026-11-15T17:49:10.599Z', source: 'stream', type: 'started', session_id: 's', model: 'auto' },
  { seq: 1, at: '2026-11-15T17:49:10.600Z', source: 'stream', type: 'text', delta: 'Hel' },
  { seq: 2, at: '2026-11-15T17:49:10.601Z', source: 'stream', type: 'tool_call', id: '1', name: 'read_file', class: 'file_read', claude_name: 'Read', input: { file_path: 'a' } },
  { seq: 3, at: '2026-11-15T17:49:10.602Z', source: 'stream', type: 'tool_result', id: '1', name: 'read_file', ok: false, error: { type: 'file_not_found', message: 'gone' } },
];
const RESULT = {
  success: true,
  exitCode: 0,
  sessionId: 's',
  duration: 5,
  messages: [
    { id: '1', role: 'assistant', content: [{ type: 'text', text: 'Hello' }], timestamp: 1, tool: 'gemini', usage: { input_tokens: 3, output_tokens: 2, total_tokens: 6, thought_tokens: 1 }, _original: {} },
  ],
  data: 'Sure: {"n": 1}',
};

before(async () => {
  scratch = await mkdtemp(path.join(tmpdir(), 'sdk-test-'));
  const program = path.join(scratch, 'alhena');
  await writeFile(
    program,
    `#!/usr/bin/env node
const { appendFileSync, existsSync, mkdirSync, readFileSync } = require('node:fs');
const [command, ...args] = process.argv.slice(2);
if (command === 'detect') {
  if (process.env.NO_CLI) process.exit(3);
  console.log(JSON.stringify({ path: '/usr/local/bin/gemini', version: '0.61.0' }));
} else if (command === 'sessions') {
  if (args.at(-1) === 'none') { console.error('error: No Gemini session has the id none'); process.exit(1); }
  if (args.at(-1) === 'broken') { console.error('error: cannot read it'); process.exit(1); }
  console.log(JSON.stringify([{ id: args.join(' '), role: 'user', content: '', timestamp: 1, tool: 'gemini', _original: {} }]));
} else if (command === 'parse') {
  if (existsSync(args.at(-1))) console.log(${JSON.stringify(JSON.stringify(RESULT))});
  else process.exit(2);
} else {
  const prompt = readFileSync(0, 'utf8');
  appendFileSync(process.env.CALLS, JSON.stringify({ args, prompt }) + '\\n');
  if (prompt === 'refuse') { console.error('error: wrong usage'); process.exit(2); }
  mkdirSync(args.find((word) => word.startsWith('--record=')).slice(9));
  process.stdout.write(${JSON.stringify(EVENTS.map((event) => JSON.stringify(event)).join('\n'))} + '\\n');
  if (prompt === 'hang') setInterval(() => {}, 1000);
}
`,
  );
  await chmod(program, 0o755);
  env = { ...process.env, ALHENA_BIN: program, CALLS: path.join(scratch, 'calls') };
});
after(() => rm(scratch, { recursive: true }));

test('permission modes and options become arguments', () => { // B-50 to B-53
  const base = ['run', '--as', 'events', '--trust'];
  assert.deepEqual(commandLine({ prompt: 'x' }), [...base, '--approval=default']);
  assert.deepEqual(commandLine({ prompt: 'x', permissionMode: 'acceptEdits' }), [...base, '--approval=auto-edit']);
  assert.deepEqual(commandLine({ prompt: 'x', permissionMode: 'bypassPermissions' }), [...base, '--approval=yolo']);
  assert.deepEqual(
    commandLine({
      prompt: 'x', permissionMode: 'plan', workingDir: '/w', model: 'm', timeout: 1500, systemPrompt: '-brief', includeDirectories: ['a'],
      allowedTools: ['t'], disallowedTools: ['u'], sessionId: 'id',
    }),
    [...base, '--approval=plan', '--dir=/w', '--model=m', '--timeout=1500ms', '--system-prompt=-brief', '--include-dir=a', '--allow-tool=t',
      '--deny-tool=u', '--session-id=id'],
  );
  assert.deepEqual(commandLine({ prompt: 'x', sessionId: 'id', resume: true }).at(-1), '--resume=id');
  assert.deepEqual(commandLine({ prompt: 'x', resume: true }).at(-1), '--resume');
});

test('events are told as they come, with what they add to the conversation', async () => {
  const told: StreamEvent[] = [];
  const result = await execute({ prompt: '- do it', env, onEvent: (event) => told.push(event) });
  assert.deepEqual(result, RESULT);
  assert.deepEqual(told.map((event) => event.event), EVENTS);
  assert.deepEqual(told.map((event) => JSON.parse(event.raw)), EVENTS);
  assert.deepEqual(
    told.map((event) => event.message),
    [
      undefined,
      { role: 'assistant', content: [{ type: 'text', text: 'Hel' }], timestamp: Date.parse('2026-11-15T17:49:10.600Z'), tool: 'gemini' },
      { role: 'assistant', content: [{ type: 'tool_use', id: '1', name: 'Read', input: { file_path: 'a' } }], timestamp: Date.parse('2026-11-15T17:49:10.601Z'), tool: 'gemini' },
      { role: 'assistant', content: [{ type: 'tool_result', tool_use_id: '1', content: 'gone', is_error: true }], timestamp: Date.parse('2026-11-15T17:49:10.602Z'), tool: 'gemini' },
    ],
  );
  const call = JSON.parse((await readFile(env['CALLS']!, 'utf8')).trim().split('\n').at(-1)!);
  assert.equal(call.prompt, '- do it');
  assert.equal(call.args.at(-1), '-');
});

test('json: true gives the JSON in the answer', async () => {
  const result = await execute<{ n: number }>({ prompt: 'x', json: true, env });
  assert.deepEqual(result.data, { n: 1 });
});

test('usage is spelled as asked', async () => { // B-21
  const result = await execute({ prompt: 'x', usage: 'camelCase', env });
  assert.deepEqual(result.messages[0]?.usage, { inputTokens: 3, outputTokens: 2, totalTokens: 6, thoughtTokens: 1 });
  assert.deepEqual(camelUsage({ input_tokens: 1, output_tokens: 2, total_tokens: 3, cached_tokens: 4 }), {
    inputTokens: 1, outputTokens: 2, totalTokens: 3, cacheReadTokens: 4,
  });
});

test('what could not be started is a result too', async () => {
  const refused = await execute({ prompt: 'refuse', env });
  assert.deepEqual({ ...refused, duration: 0 }, {
    success: false, exitCode: 2, sessionId: '', duration: 0, messages: [], data: '', error: 'error: wrong usage',
  });
  const missing = await execute({ prompt: 'x', env: { ...env, ALHENA_BIN: path.join(scratch, 'missing') } });
  assert.equal(missing.success, false);
  assert.equal(missing.error, 'alhena is not on PATH, and ALHENA_BIN does not say where it is');
});

test('an abort stops alhena', async () => {
  const controller = new AbortController();
  const result = await execute({
    prompt: 'hang', env, signal: controller.signal,
    onEvent: ({ event }) => event.type === 'tool_result' && controller.abort(),
  });
  assert.equal(result.sessionId, 's');
});

test('a callback that throws stops the run', async () => {
  const result = await execute({
    prompt: 'hang', env,
    onEvent: () => {
      throw new Error('no room for events');
    },
  });
  assert.deepEqual([result.success, result.exitCode, result.error], [false, 1, 'no room for events']);
});

test('messages of a session are loaded', async () => { // B-39 to B-42
  const ids = async (options: Parameters<typeof loadMessages>[0]) => (await loadMessages({ ...options, env })).map((message) => message.id);
  assert.deepEqual(await ids({ projectPath: '/p', sessionId: 'abc' }), ['show --as messages --dir=/p -- abc']);
  assert.deepEqual(await ids({}), [`show --as messages --dir=${process.cwd()} -- latest`]);
  await assert.rejects(loadMessages({ projectPath: '/p', sessionId: 'none', env }), { message: 'No Gemini session found for project: /p' });
  await assert.rejects(loadMessages({ projectPath: '/p', sessionId: 'broken', env }), { message: 'error: cannot read it' });
});

test('capabilities say what it can do and where it is', async () => { // B-44 to B-48, B-56, B-57
  assert.equal(await detectCli(env), '/usr/local/bin/gemini');
  assert.equal(await detectCli({ ...env, NO_CLI: '1' }), null);
  const expected = {
    supportsSlashCommands: false, supportsModels: true,
    models: [{ id: 'gemini-2.5-pro', name: 'Gemini 2.5 Pro' }, { id: 'gemini-2.5-flash', name: 'Gemini 2.5 Flash' }],
    supportsWebSearch: true, supportsThinking: true,
  };
  assert.deepEqual(await getCapabilities(env), { ...expected, installed: true, cliPath: '/usr/local/bin/gemini' });
  assert.deepEqual(await getCapabilities({ ...env, NO_CLI: '1' }), { ...expected, installed: false, cliPath: null });
});

test('JSON is found wherever it stands', () => {
  const files = { files: ['a', 'b'] };
  for (const text of [
    '{"files":["a","b"]}',
    'Here:\n```json\n{"files": ["a", "b"]}\n```\nElse?',
    '```text\nnot this {"files": [\n```\nbut\n```json\n{"files":["a","b"]}\n```',
    'A set {1, 2} is not it, but {"files":["a","b"]} is.',
  ]) {
    assert.deepEqual(extractJson(text), files, text);
  }
  for (const text of ['', '42', 'no {json} here [at all]', '{"cut": ']) assert.equal(extractJson(text), undefined, text);
  assert.equal(extractJson('[{'.repeat(100_000)), undefined);
});
