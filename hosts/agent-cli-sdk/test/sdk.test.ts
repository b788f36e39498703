// The package without the CLI: a stand-in says what `alhena` would.

import assert from 'node:assert/strict';
import type { ChildProcess } from 'node:child_process';
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';

import { runArguments } from 'alhena/adapter';

import { alhenaOptions } from '../src/execute.js';
import { detectCli, execute, getCapabilities, loadMessages, loadSession, type ExecuteOptions, type OnEventData } from '../src/index.js';

let scratch: string;
let env: Record<string, string>;

const message = (text: string) => ({
  id: '1', role: 'assistant', content: [{ type: 'text', text }], timestamp: 1, tool: 'gemini', usage: { inputTokens: 3, outputTokens: 2, totalTokens: 6 }, _original: {},
});
const LINES = [
  { type: 'event', event: { seq: 0, at: '2026-11-15T17:49:10.599Z', source: 'stream', type: 'started', session_id: 's', model: 'auto' } },
  { type: 'event', event: { seq: 1, at: '2026-11-15T17:49:10.600Z', source: 'stream', type: 'text', delta: 'Hel' }, message: message('Hel') },
  { type: 'message', message: message('Hello') },
];
const RESULT = { success: true, exitCode: 0, sessionId: 's', duration: 5, messages: [message('Hello')], data: 'Sure: {"n": 1}' };

before(async () => {
  scratch = await mkdtemp(path.join(tmpdir(), 'sdk-test-'));
  const program = path.join(scratch, 'alhena');
  await writeFile(
    program,
    `#!${process.execPath}
const { readFileSync, writeFileSync } = require('node:fs');
const [command, ...args] = process.argv.slice(2);
const print = (value) => process.stdout.write(JSON.stringify(value) + '\\n');
if (command === 'detect') {
  if (process.env.NO_CLI) process.exit(3);
  print({ path: '/usr/local/bin/gemini', version: '0.61.0', place: 'path' });
} else if (command === 'sessions') {
  if (args.at(-1) === 'none') { console.error('error: No Gemini session has the id none'); process.exit(1); }
  if (args.includes('--dir=/gone')) { console.error('error: there is no directory /gone'); process.exit(2); }
  if (args.at(-1) === 'broken') { console.error('error: cannot read it'); process.exit(1); }
  print([{ id: args.join(' ') }]);
} else {
  const prompt = readFileSync(0, 'utf8');
  writeFileSync(process.env.CALL, JSON.stringify({ args, prompt }));
  if (prompt === 'refuse') { console.error('error: wrong usage\\nhint: read'); process.exit(2); }
  const result = { type: 'result', result: ${JSON.stringify(RESULT)}, json: { n: 1 } };
  if (prompt === 'hang') {
    process.on('SIGTERM', () => { print({ ...result, result: { ...result.result, success: false, exitCode: 130, error: 'Stopped' } }); process.exit(130); });
    setInterval(() => {}, 1000);
  }
  console.error('noise');
  ${JSON.stringify(LINES)}.forEach(print);
  if (prompt !== 'hang') print(result);
}
`,
  );
  await chmod(program, 0o755);
  env = { ALHENA_BIN: program, CALL: path.join(scratch, 'call') };
});
after(() => rm(scratch, { recursive: true }));

test('permission modes and options become arguments', () => { // B-50 to B-53
  const args = (options: Omit<ExecuteOptions, 'prompt'>) => runArguments(alhenaOptions({ prompt: 'x', ...options }), scratch);
  // A host that sets no time-out has none: neither the user's defaults nor silence stop its runs.
  const unlimited = ['--timeout=none', '--first-event-timeout=none', '--stall-timeout=none', '--trust'];
  assert.deepEqual(args({}), ['--approval=default', ...unlimited]);
  assert.deepEqual(args({ permissionMode: 'acceptEdits' }), ['--approval=acceptEdits', ...unlimited]);
  assert.deepEqual(args({ permissionMode: 'bypassPermissions' }), ['--approval=bypassPermissions', ...unlimited]);
  assert.deepEqual(
    args({
      tool: 'gemini', permissionMode: 'plan', workingDir: '/w', model: 'm', timeout: 1500, includeDirectories: ['/a'],
      allowedTools: ['t'], disallowedTools: ['u'], sessionId: 'id',
    }),
    ['--approval=plan', '--timeout=1500ms', '--first-event-timeout=1500ms', '--stall-timeout=1500ms', '--dir=/w', '--model=m', '--trust',
      '--include-dir=/a', '--allow-tool=t', '--deny-tool=u', '--session-id=id'],
  );
  assert.equal(args({ sessionId: 'id', resume: true }).at(-1), '--resume=id');
  assert.equal(args({ resume: true }).at(-1), '--resume');
});

test('everything is told as it comes, and the result is what was told', async () => {
  const told: OnEventData[] = [];
  const seen = { stdout: '', stderr: '', closed: -1, started: undefined as ChildProcess | undefined };
  const result = await execute({
    tool: 'gemini',
    prompt: '- do it',
    env,
    onStart: (process) => (seen.started = process),
    onEvent: (data) => told.push(data),
    onStdout: (chunk) => (seen.stdout += chunk),
    onStderr: (chunk) => (seen.stderr += chunk),
    onClose: (exitCode) => (seen.closed = exitCode),
  });
  assert.deepEqual(result, RESULT);
  assert.deepEqual(told.map(({ event, message }) => [event?.type, message]), [['started', null], ['text', message('Hel')], [undefined, message('Hello')]]);
  assert.deepEqual(told.map(({ raw }) => JSON.parse(raw) as unknown), LINES);
  assert.ok(seen.started?.pid);
  assert.equal(seen.stdout.trim().split('\n').length, LINES.length + 1);
  assert.deepEqual([seen.stderr, seen.closed], ['noise\n', 0]);
  const call = JSON.parse(await readFile(env['CALL']!, 'utf8')) as { args: string[]; prompt: string };
  assert.deepEqual([call.prompt, call.args.at(-1), call.args[0]], ['- do it', '-', '--as=agent-cli-sdk-lines']);
});

test('json: true gives the JSON in the answer', async () => {
  assert.deepEqual((await execute<{ n: number }>({ prompt: 'x', json: true, env })).data, { n: 1 });
});

test('what could not be started is a result too', async () => {
  const errors: string[] = [];
  const closed: number[] = [];
  const listen = { onError: (error: Error) => errors.push(error.message), onClose: (code: number) => closed.push(code) };
  const refused = await execute({ prompt: 'refuse', env, ...listen });
  assert.deepEqual({ ...refused, duration: 0 }, { success: false, exitCode: 2, sessionId: '', duration: 0, messages: [], data: '', error: 'wrong usage' });
  const missing = await execute({ prompt: 'x', env: { ...env, ALHENA_BIN: path.join(scratch, 'missing') }, ...listen });
  assert.deepEqual([missing.success, missing.exitCode, missing.error], [false, 127, `ALHENA_BIN names no program: ${path.join(scratch, 'missing')}`]);
  const path_ = await execute({ prompt: 'x', env, sessionId: '../../secret', resume: true });
  assert.equal(path_.error, 'sessionId must be the id of a session, got: "../../secret"');
  assert.deepEqual([errors.length, closed], [2, [2, 127]]);
});

test('an abort and a listener that throws stop alhena', async () => {
  const controller = new AbortController();
  const aborted = await execute({ prompt: 'hang', env, signal: controller.signal, onEvent: ({ message }) => message && controller.abort() });
  assert.deepEqual([aborted.success, aborted.exitCode, aborted.error], [false, 130, 'Stopped']);
  const broken = await execute({
    prompt: 'hang', env,
    onEvent: () => {
      throw new Error('no room for events');
    },
  });
  assert.deepEqual([broken.success, broken.exitCode, broken.error], [false, 1, 'no room for events']);
});

test('messages of a session are loaded, and an id is never a path', async () => { // B-39 to B-42
  const first = async (options: Parameters<typeof loadSession>[0]) => (await loadSession({ ...options, env }))[0]?.id;
  assert.equal(await first({ projectPath: '/p', sessionId: 'abc' }), 'show --as=agent-cli-sdk --dir=/p -- abc');
  assert.equal(await first({}), `show --as=agent-cli-sdk --dir=${process.cwd()} -- latest`);
  assert.equal((await loadMessages({ tool: 'gemini', sessionId: 'abc', env }))[0]?.id, `show --as=agent-cli-sdk --dir=${process.cwd()} -- abc`);
  const missing = (project: string) => ({ kind: 'no_session', message: `No Gemini session found for project: ${project}` });
  await assert.rejects(loadMessages({ projectPath: '/p', sessionId: 'none', env }), missing('/p'));
  await assert.rejects(loadSession({ projectPath: '/gone', env }), missing('/gone'));
  await assert.rejects(loadMessages({ projectPath: scratch, sessionId: 'broken', env }), { message: 'cannot read it' });
  for (const id of ['../x', '/etc/passwd', 'a.jsonl', '']) await assert.rejects(loadSession({ sessionId: id, env }), { kind: 'usage' });
});

test('capabilities say what it can do and where it is, also when nothing is installed', async () => { // B-44 to B-48, B-56, B-57
  assert.equal(await detectCli({ env }), '/usr/local/bin/gemini');
  assert.equal(await detectCli({ env: { ...env, NO_CLI: '1' } }), null);
  const expected = {
    supportsSlashCommands: false, supportsModels: true,
    models: [{ id: 'gemini-2.5-pro', name: 'Gemini 2.5 Pro' }, { id: 'gemini-2.5-flash', name: 'Gemini 2.5 Flash' }],
    supportsWebSearch: true, supportsThinking: true,
  };
  assert.deepEqual(await getCapabilities('gemini', { env }), { ...expected, installed: true, cliPath: '/usr/local/bin/gemini' });
  assert.deepEqual(await getCapabilities('gemini', { env: { ...env, NO_CLI: '1' } }), { ...expected, installed: false });
  assert.deepEqual(await getCapabilities('gemini', { env: { ALHENA_BIN: path.join(scratch, 'missing') } }), { ...expected, installed: false });
  await assert.rejects(getCapabilities('claude' as 'gemini'), { message: 'Unknown agent type: claude' });
});
