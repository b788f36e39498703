// The package without the CLI: a stand-in says what `alhena` would.

import assert from 'node:assert/strict';
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';

import { AlhenaError, ask, BinaryNotFoundError, CommandFailedError, detect, findBinary, listSessions, loadMessages, query, RunFailedError, UnsupportedPlatformError } from 'alhena';
import type { Message, QueryMessage, QueryOptions } from 'alhena';

import { OPTION_OF } from '../src/run-options.js';
import { find } from '../src/binary.js';
import { withOptions } from '../src/errors.js';
import { runArguments } from '../src/options.js';
import type { MessageLine } from '../src/messages.js';
import { packagesFor } from '../src/platforms.js';
import { Told } from '../src/query.js';

let scratch: string;
let env: Record<string, string>;

const said = (id: string, text: string): Message => ({
  id, role: id === 'a' ? 'user' : 'assistant', content: [{ type: 'text', text }], timestamp: 1, tool: 'gemini', _original: {},
});
const usage = { prompt: 1, cached: 0, output: 1, thoughts: 0, tool: 0, total: 2, models: {} };
const outcome = (more: object) => ({
  status: 'success', text: 'Hello', final_text: 'Hello', session_id: 's', models: [], files: [], commands: [], usage,
  tool_calls: 0, duration_ms: 5, warnings: [], malformed: { lines: 0, bytes: 0 }, exit_code: 0, ...more,
});
const event = (seq: number, more: object) => ({ seq, at: '2026-11-15T17:49:10.599Z', source: 'stream', ...more });
const LINES = [
  { type: 'event', event: event(0, { type: 'started', session_id: 's', model: 'auto' }) },
  { type: 'event', event: event(1, { type: 'prompt', text: 'Hi' }), message: said('a', 'Hi') },
  { type: 'event', event: event(2, { type: 'text', delta: 'Hel' }), message: said('b', 'Hel') },
  { type: 'event', event: event(3, { type: 'text', delta: 'lo' }), message: said('b', 'Hello') },
  { type: 'message', message: said('b', 'Hello!') },
];
const MESSAGES = [said('a', 'Hi'), said('b', 'Hello!')];
const FAILURE = { kind: 'auth', message: 'The key is wrong', hint: 'Take another', exit_code: 41 };
const REFUSED = { kind: 'input', message: '`max_cost` has to be more than 0', hint: 'Leave it out, or give `max_tokens` or `deny_tool`; `run_shell_command` is a tool.' };
const QUOTED = { kind: 'input', message: 'The API wants a `system_prompt`', hint: 'Take another `model`.', http_status: 400 };

before(async () => {
  scratch = await mkdtemp(path.join(tmpdir(), 'alhena-test-'));
  const program = path.join(scratch, 'alhena');
  await writeFile(
    program,
    `#!${process.execPath}
const { readFileSync, writeFileSync } = require('node:fs');
const [command, ...args] = process.argv.slice(2);
const print = (value) => process.stdout.write(JSON.stringify(value) + '\\n');
if (command === 'detect') {
  if (process.env.REFUSE) { print({ error: { message: 'no such directory', hint: 'Another.' } }); process.exit(2); }
  if (process.env.NO_CLI) process.exit(3);
  print({ path: '/usr/bin/gemini', version: '0.61.0', place: 'path', args });
} else if (command === 'sessions') {
  print(args[0] === 'list' ? [{ id: 's' }] : [{ id: args.join(' ') }]);
} else {
  const prompt = readFileSync(0, 'utf8');
  writeFileSync(process.env.CALL, JSON.stringify({ args, prompt }));
  if (prompt === 'refuse') { console.error('error: wrong usage\\nhint: read the manual'); process.exit(2); }
  if (prompt === 'garble') { console.log('no json'); process.exit(0); }
  if (prompt === 'hang') {
    process.on('SIGTERM', () => {
      writeFileSync(process.env.CALL + '.stopped', '');
      print({ type: 'result', outcome: ${JSON.stringify(outcome({ status: 'cancelled', failure: { kind: 'cancelled', message: 'Stopped', hint: '' } }))}, messages: [] });
      process.exit(130);
    });
    setInterval(() => {}, 1000);
  }
  ${JSON.stringify(LINES)}.forEach(print);
  const failures = { 'bad value': ${JSON.stringify(REFUSED)}, quote: ${JSON.stringify(QUOTED)} };
  if (failures[prompt]) {
    print({ type: 'result', outcome: { ...${JSON.stringify(outcome({ status: 'failed' }))}, failure: failures[prompt] }, messages: [] });
    process.exit(2);
  }
  if (prompt === 'fail') {
    print({ type: 'result', outcome: ${JSON.stringify(outcome({ status: 'failed', failure: FAILURE }))}, messages: [] });
    process.exit(4);
  } else if (prompt !== 'hang') print({ type: 'result', outcome: ${JSON.stringify(outcome({}))}, messages: ${JSON.stringify(MESSAGES)} });
}
`,
  );
  await chmod(program, 0o755);
  env = { ALHENA_BIN: program, CALL: path.join(scratch, 'call') };
});
after(() => rm(scratch, { recursive: true }));

async function all(prompt: string, options: QueryOptions = {}): Promise<{ messages: QueryMessage[]; error: unknown }> {
  const messages: QueryMessage[] = [];
  try {
    for await (const message of query(prompt, { env, ...options })) messages.push(message);
  } catch (error) {
    return { messages, error };
  }
  return { messages, error: undefined };
}
const shape = (message: QueryMessage) => ('message' in message ? `${message.type} ${JSON.stringify(message.message.content).slice(24, -3)}` : message.type);

test('each message comes once, whole, and the result last', async () => {
  const { messages, error } = await all('- Hi');
  assert.equal(error, undefined);
  assert.deepEqual(messages.map(shape), ['system', 'user Hi', 'assistant Hello!', 'result']);
  const result = messages.at(-1);
  assert.ok(result?.type === 'result');
  assert.deepEqual([result.subtype, result.is_error, result.result, result.session_id], ['success', false, 'Hello', 's']);
  assert.deepEqual(result.messages, MESSAGES);
  const call = JSON.parse(await readFile(env['CALL']!, 'utf8')) as { args: string[]; prompt: string };
  assert.deepEqual([call.prompt, call.args.at(-1)], ['- Hi', '-']);
});

test('growing messages and events come when they are asked for', async () => {
  const { messages } = await all('Hi', { includePartialMessages: true, includeEvents: true });
  assert.deepEqual(messages.map(shape), [
    'system', 'stream_event', 'stream_event', 'partial Hi', 'stream_event', 'user Hi', 'partial Hel', 'stream_event', 'partial Hello',
    'partial Hello!',
    'assistant Hello!', 'result',
  ]);
});

test('an answer comes with all calls that it grew by and before their results', () => {
  const line = (id: string, ...content: object[]) => ({
    type: 'event', event: event(1, { type: 'text', delta: '' }),
    message: { ...said(id, ''), role: id === 'a-results' ? 'user' : 'assistant', content },
  });
  const call = (id: string) => ({ type: 'tool_use', id, name: 'Read', input: {} });
  const result = (id: string) => ({ type: 'tool_result', tool_use_id: id, content: '', is_error: false });
  const told = new Told({});
  const lines = [
    line('a', call('1')), line('a-results', result('1')),
    // Over ACP the second call of an answer begins when the first has ended.
    line('a', call('1'), call('2')), line('a-results', result('1'), result('2')), line('b', { type: 'text', text: 'Done.' }),
  ];
  const messages = lines.flatMap((each) => [...told.line(each as unknown as MessageLine)]);
  const shapes = messages.map((message) => ('message' in message ? [message.type, message.message.content.length] : []));
  assert.deepEqual(shapes, [['assistant', 2], ['user', 2]]);
});

test('a run that failed throws after its result', async () => {
  const { messages, error } = await all('fail');
  assert.equal(messages.at(-1)?.type, 'result');
  assert.ok(error instanceof RunFailedError);
  assert.deepEqual([error.kind, error.message, error.hint, error.exitCode], ['auth', 'The key is wrong', 'Take another', 4]);
  await assert.rejects(ask('fail', { env }), RunFailedError);
  assert.equal((await ask('Hi', { env })).result, 'Hello');
});

test('errors name the options of this package, and quote others as they are', async () => {
  const told = async (prompt: string) => {
    const { error } = await all(prompt);
    assert.ok(error instanceof RunFailedError);
    return [error.message, error.hint];
  };
  const hint = 'Leave it out, or give `maxTokens` or `denyTools`; `run_shell_command` is a tool.';
  assert.deepEqual(await told('bad value'), ['`maxCost` has to be more than 0', hint]);
  assert.deepEqual(await told('quote'), ['The API wants a `system_prompt`', 'Take another `model`.']);
  for (const setting of Object.keys(OPTION_OF)) assert.match(withOptions(`(\`${setting}\`)`), /^\(`[a-zA-Z]+`\)$/);
});

test('what alhena refuses is an error with its words', async () => {
  const { error } = await all('refuse');
  assert.ok(error instanceof CommandFailedError);
  assert.deepEqual([error.kind, error.message, error.hint, error.exitCode], ['usage', 'wrong usage', 'read the manual', 2]);
  assert.equal(((await all('garble')).error as CommandFailedError).kind, 'protocol');
});

test('wrong use is told before anything is started', async () => {
  const wrong = async (prompt: unknown, options: object | null, message: string, kind = 'usage') => {
    const error: unknown = await ask(prompt as string, options as QueryOptions).catch((error: unknown) => error);
    assert.ok(error instanceof AlhenaError, String(error));
    assert.deepEqual([error.kind, error.message], [kind, message]);
  };
  // It cannot be started: whoever tries says so.
  const none = { binary: '/nonexistent/alhena' };
  await wrong(undefined, none, 'the prompt must be a string, got: undefined');
  await wrong(5, none, 'the prompt must be a string, got: number');
  await wrong('Hi', null, 'the options must be an object');
  await wrong('Hi', { ...none, allowTools: 'write_file' }, 'allowTools must be a list of strings, got: "write_file"');
  await wrong('Hi', { ...none, timeout: '10' }, 'timeout must be a number or \'none\', got: "10"');
  await wrong('Hi', { ...none, stallTimeout: 'never' }, 'stallTimeout must be a number or \'none\', got: "never"');
  await wrong('Hi', { ...none, cwd: 5 }, 'cwd must be a string, got: 5');
  await wrong('Hi', { ...none, resume: false }, 'resume must be the id of a session, or true, got: false');
  await wrong('Hi', { ...none, mcpServers: 5 }, 'mcpServers must be an object of servers or a file, got: 5');
  await wrong('Hi', { ...none, signal: {} }, 'the signal must be an AbortSignal');
  await wrong('Hi', { ...none, signal: AbortSignal.abort() }, 'The run was cancelled', 'cancelled');
  await assert.rejects(ask('Hi', { env, model: 'a\0b' }), { kind: 'usage' });
  // A command that was asked for JSON says in JSON what is wrong.
  await assert.rejects(detect({ env: { ...env, REFUSE: '1' } }), { kind: 'usage', message: 'no such directory', hint: 'Another.' });
});

test('an abort stops the run and its result is told', async () => {
  const controller = new AbortController();
  const messages: QueryMessage[] = [];
  await assert.rejects(async () => {
    for await (const message of query('hang', { env, signal: controller.signal, includePartialMessages: true })) {
      messages.push(message);
      if (message.type === 'partial') controller.abort();
    }
  }, { name: 'RunFailedError', kind: 'cancelled' });
  assert.equal(messages.at(-1)?.type, 'result');
});

test('whoever leaves the loop stops the run, and goes on when it has ended', async () => {
  await rm(`${env['CALL']}.stopped`, { force: true });
  for await (const message of query('hang', { env })) if (message.type === 'user') break;
  await readFile(`${env['CALL']}.stopped`);
});

test('each platform has its packages, and others are told that there is none', () => {
  assert.deepEqual(packagesFor('linux', 'x64'), ['@alhena/cli-linux-x64', '@alhena/cli-linux-x64-musl']);
  assert.deepEqual(packagesFor('darwin', 'arm64'), ['@alhena/cli-darwin-arm64']);
  const refused = (os: string, hint: RegExp) => assert.throws(() => find({ PATH: '' }, os, 'x64'), (error: unknown) => {
    assert.ok(error instanceof UnsupportedPlatformError && error instanceof BinaryNotFoundError);
    assert.deepEqual([error.kind, error.name], ['unsupported_platform', 'UnsupportedPlatformError']);
    assert.match(error.message, new RegExp(`^alhena does not run on ${os} x64: there are packages for linux x64, .*darwin arm64$`));
    assert.match(error.hint, hint);
    return true;
  });
  refused('win32', /WSL/);
  refused('freebsd', /ALHENA_BIN/);
  // Somebody who built it has it.
  assert.equal(find({ PATH: scratch }, 'freebsd', 'x64'), path.join(scratch, 'alhena'));
  assert.equal(find(env, 'freebsd', 'x64'), env['ALHENA_BIN']);
});

test('alhena is found by ALHENA_BIN or on PATH, never in the working directory', async () => {
  assert.equal(findBinary(env), env['ALHENA_BIN']);
  const bad = (more: Record<string, string>, message: RegExp) => assert.throws(() => findBinary(more), (error: unknown) => {
    assert.ok(error instanceof BinaryNotFoundError);
    assert.match(error.message, message);
    assert.match(error.hint, /ALHENA_BIN/);
    return true;
  });
  bad({ ALHENA_BIN: 'alhena' }, /no absolute path: alhena/);
  bad({ ALHENA_BIN: path.join(scratch, 'missing') }, /names no program/);
  assert.equal(findBinary({ PATH: `.:${path.join(scratch, 'none')}:${scratch}` }), path.join(scratch, 'alhena'));
  const place = path.join(scratch, 'here');
  await mkdir(place);
  await writeFile(path.join(place, 'alhena'), '', { mode: 0o755 });
  const before = process.cwd();
  process.chdir(place);
  try {
    bad({ PATH: '.:' }, /alhena not found/);
  } finally {
    process.chdir(before);
  }
  assert.ok((await all('Hi', { binary: path.join(scratch, 'missing') })).error instanceof BinaryNotFoundError);
});

test('options become arguments, and long ones files', async () => {
  const at = (file: string) => path.join(scratch, file);
  assert.deepEqual(runArguments({}, scratch), ['--approval=default']);
  assert.deepEqual(
    runArguments({
      cwd: '/w', model: 'm', approval: 'acceptEdits', trust: true, sandbox: false, includeDirs: ['/a'], allowTools: ['t'], denyTools: ['u'],
      mcpServers: { x: { command: 'y' } }, systemPrompt: '-brief', resume: 'id', timeout: 1500, maxTurns: 3, maxTokens: 9, maxCost: 0.5, maxCalls: 7, offline: true, useConfig: false,
    }, scratch),
    ['--approval=acceptEdits', '--timeout=1500ms', '--first-event-timeout=1500ms', '--stall-timeout=1500ms', '--dir=/w', '--model=m', '--trust',
      '--sandbox=off', '--include-dir=/a', '--allow-tool=t', '--deny-tool=u', `--mcp-server=${at('mcp.json')}`,
      `--system-prompt-file=${at('system-prompt.md')}`, '--resume=id', '--max-turns=3', '--max-tokens=9', '--max-cost=0.5', '--max-calls=7', '--offline', '--no-config'],
  );
  assert.equal(await readFile(at('system-prompt.md'), 'utf8'), '-brief');
  assert.deepEqual(runArguments({ timeout: 9, stallTimeout: 5, resume: true }, scratch).slice(2), ['--first-event-timeout=9ms', '--stall-timeout=5ms', '--resume']);
  assert.deepEqual(runArguments({ timeout: 'none' }, scratch).slice(1), ['--timeout=none', '--first-event-timeout=none', '--stall-timeout=none']);
  assert.deepEqual(runArguments({ firstEventTimeout: 'none', stallTimeout: 'none' }, scratch).slice(1), ['--first-event-timeout=none', '--stall-timeout=none']);
  assert.deepEqual(runArguments({ trust: 'settings' }, scratch).slice(1), ['--trust=settings']);
  assert.deepEqual(runArguments({ trust: false }, scratch).slice(1), []);
  for (const trust of ['x', 'Settings', 'true', '', 1, 0, {}]) {
    const wrong = { trust } as QueryOptions;
    const refused = { kind: 'usage', message: `trust must be a boolean or 'settings', got: ${JSON.stringify(trust)}` };
    assert.throws(() => runArguments(wrong, scratch), refused);
    await assert.rejects(detect({ ...wrong, env }), refused);
  }
  for (const wrong of [{ timeout: 0 }, { timeout: Number.NaN }, { resume: '../s' }, { sessionId: 'a.json' }]) {
    assert.throws(() => runArguments(wrong, scratch), { kind: 'usage' });
  }
});

test('what is installed and what was said before', async () => {
  assert.deepEqual(await detect({ env, cwd: '/w', trust: 'settings' }), {
    path: '/usr/bin/gemini', version: '0.61.0', place: 'path', args: ['--json', '--dir=/w', '--trust=settings'],
  });
  assert.equal(await detect({ env: { ...env, NO_CLI: '1' } }), null);
  assert.deepEqual(await listSessions({ env }), [{ id: 's' }]);
  assert.equal((await loadMessages({ env, cwd: '/w', sessionId: 'abc' }))[0]?.id, 'show --as=messages --dir=/w -- abc');
  assert.equal((await loadMessages({ env, cwd: '/w' }))[0]?.id, 'show --as=messages --dir=/w -- latest');
  await assert.rejects(loadMessages({ env, sessionId: '/etc/passwd' }), { kind: 'usage' });
});
