// On the real Gemini CLI, with a scripted API that `cargo xtask test real_hosts` starts.

import assert from 'node:assert/strict';
import { mkdtemp, readFile } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';

import { detectCli, execute, getCapabilities, loadMessages, loadSession, parse, type ExecuteOptions, type UnifiedMessage } from '../src/index.js';

const scenarios = JSON.parse(process.env['ALHENA_TEST_SCENARIOS'] ?? '{}') as Record<string, string>;
const skip = Object.keys(scenarios).length === 0 && 'needs ALHENA_TEST_SCENARIOS';

async function place(scenario: string): Promise<Omit<ExecuteOptions, 'prompt'> & { workingDir: string }> {
  const workingDir = await mkdtemp(path.join(process.env['ALHENA_TEST_WORK'] ?? '', 'sdk-'));
  return { workingDir, model: 'gemini-2.5-flash', env: { GOOGLE_GEMINI_BASE_URL: scenarios[scenario] } };
}

const kinds = (message: UnifiedMessage | undefined) =>
  Array.isArray(message?.content) ? message.content.map((block) => block.type) : [];

test('it executes, edits and tells', { skip }, async () => { // B-50, B-52, B-55
  const options = await place('write');
  const told = new Map<string, UnifiedMessage[]>();
  const result = await execute({
    ...options,
    prompt: '- write it',
    permissionMode: 'acceptEdits',
    onEvent: ({ message }) => message && told.set(message.id, [...(told.get(message.id) ?? []), message]),
  });
  assert.deepEqual([result.success, result.exitCode, result.error], [true, 0, undefined]);
  assert.equal(result.data, 'I wrote it.');
  assert.equal(await readFile(path.join(options.workingDir, 'made.txt'), 'utf8'), 'made\n');
  assert.deepEqual(result.messages.map((message) => message.role), ['user', 'assistant', 'assistant']);
  const [user, working, last] = result.messages;
  assert.deepEqual(user?.content, [{ type: 'text', text: '- write it' }]);
  assert.deepEqual(kinds(working), ['thinking', 'tool_use', 'tool_result', 'text']);
  const call = Array.isArray(working?.content) ? working.content[1] : undefined;
  assert.ok(call?.type === 'tool_use');
  assert.deepEqual([call.name, call.input], ['Write', { file_path: 'made.txt', content: 'made\n' }]);
  assert.deepEqual(last?.content, [{ type: 'text', text: 'I wrote it.' }]);
  assert.deepEqual([last?.model, last?.tool], ['gemini-2.5-flash', 'gemini']);
  assert.ok(last?.usage && last.usage.totalTokens >= last.usage.inputTokens);
  // The last of each that was told is the final one, under the same id, and each grew: a block that was told stays.
  assert.deepEqual([...told.values()].map((messages) => messages.at(-1)), result.messages);
  const grown = (told.get(working?.id ?? '') ?? []).map((message) => kinds(message).join(' '));
  const contains = (later: string, earlier: string) => {
    const left = later.split(' ');
    return earlier.split(' ').filter(Boolean).every((kind) => left.includes(kind) && left.splice(left.indexOf(kind), 1).length === 1);
  };
  grown.slice(1).forEach((later, at) => assert.ok(contains(later, grown[at] ?? ''), grown.join('; ')));
  assert.ok(grown.includes('thinking tool_use tool_result text'), grown.join('; '));
  for (const message of told.get(working?.id ?? '') ?? []) {
    assert.equal((message._original as { type: string }).type, 'gemini');
    for (const block of Array.isArray(message.content) ? message.content : []) {
      if (block.type === 'tool_use') assert.deepEqual([block.name, block.input], ['Write', { file_path: 'made.txt', content: 'made\n' }]);
      if (block.type === 'tool_result') assert.equal(block.is_error, false);
    }
  }

  // The same from the store, later; there each has the id of its record.
  const named = result.messages.map((message) => ({ ...message, id: (message._original as { id: string }).id }));
  assert.deepEqual(await loadMessages({ tool: 'gemini', projectPath: options.workingDir, sessionId: result.sessionId }), named);
  assert.deepEqual(await loadSession({ projectPath: options.workingDir }), named);
  assert.deepEqual(parse(working?._original as object), named[1]);
});

test('a default run changes nothing', { skip }, async () => { // B-51
  const options = await place('write');
  const result = await execute({ ...options, prompt: 'Go' });
  assert.equal(result.success, true);
  await assert.rejects(readFile(path.join(options.workingDir, 'made.txt')), { code: 'ENOENT' });
});

test('a refused tool is told the same way at once and at the end', { skip }, async () => {
  const flags = (messages: UnifiedMessage[]) =>
    messages.flatMap((message) => (Array.isArray(message.content) ? message.content : [])).flatMap((block) => (block.type === 'tool_result' ? [block.is_error] : []));
  const told: UnifiedMessage[] = [];
  const result = await execute({ ...(await place('write')), prompt: 'Go', onEvent: ({ message }) => message && told.push(message) });
  assert.deepEqual([...new Set(flags(result.messages))], [true]);
  assert.deepEqual([...new Set(flags(told))], [true]);
  // And so are a command that failed and a tool that went wrong; the last of each message that was told is the final one.
  const last = new Map<string, UnifiedMessage>();
  const failing = await execute({
    ...(await place('failing-sdk')),
    prompt: 'Go',
    allowedTools: ['run_shell_command'],
    onEvent: ({ message }) => message && last.set(message.id, message),
  });
  assert.deepEqual([...last.values()], failing.messages);
  assert.deepEqual(flags(failing.messages), [false, true, true, false, true, true]);
});

test('bypassPermissions runs commands', { skip }, async () => { // B-53
  const result = await execute({ ...(await place('shell')), prompt: 'Go', permissionMode: 'bypassPermissions' });
  const blocks = result.messages.flatMap((message) => (Array.isArray(message.content) ? message.content : []));
  const shell = blocks.find((block) => block.type === 'tool_use');
  assert.ok(shell?.type === 'tool_use');
  assert.deepEqual([shell.name, shell.input], ['Bash', { command: 'echo ran; exit 3', description: 'run' }]);
});

test('JSON is taken out of the answer', { skip }, async () => {
  const result = await execute<{ files: string[] }>({ ...(await place('json')), prompt: 'List', json: true });
  assert.deepEqual(result.data, { files: ['a', 'b'] });
});

test('an answer fits its schema or has failed', { skip }, async () => {
  const of = (files: object) => ({ type: 'object', properties: { files }, required: ['files'] });
  const list = of({ type: 'array', items: { type: 'string' } });
  for (const json of [false, true]) {
    const result = await execute<{ files: string[] }>({ ...(await place('json')), prompt: 'List', schema: list, json });
    assert.deepEqual([result.success, result.data], [true, { files: ['a', 'b'] }]);
  }
  const failed = await execute({ ...(await place('json')), prompt: 'List', schema: of({ type: 'number' }) });
  assert.deepEqual([failed.success, failed.exitCode], [false, 1]);
  assert.match(failed.error ?? '', /schema/);
  const refused = await execute({ ...(await place('json')), prompt: 'List', schema: { type: 'strong' } });
  assert.equal(refused.success, false);
  assert.match(refused.error ?? '', /strong/);
});

test('a session goes on', { skip }, async () => {
  const options = await place('talk');
  const first = await execute({ ...options, prompt: 'My name is Tony' });
  const second = await execute({ ...options, prompt: 'What is my name?', sessionId: first.sessionId, resume: true });
  assert.deepEqual([second.success, second.data, second.sessionId], [true, 'Tony.', first.sessionId]);
});

test('a failure is a result', { skip }, async () => {
  const result = await execute({ ...(await place('refused')), prompt: 'Go' });
  assert.deepEqual([result.success, result.exitCode, result.error], [false, 144, 'Bad argument.']);
});

test('time and patience are bounded', { skip }, async () => {
  const late = await execute({ ...(await place('hang')), prompt: 'Go', timeout: 8000 });
  assert.deepEqual([late.success, late.exitCode, late.error], [false, 124, 'The run took longer than 8 s']);
  const controller = new AbortController();
  const aborted = await execute({
    ...(await place('hang')),
    prompt: 'Go',
    signal: controller.signal,
    onEvent: ({ event }) => event?.type === 'text' && controller.abort(),
  });
  assert.deepEqual([aborted.success, aborted.exitCode, aborted.data], [false, 130, 'Thinking']);
});

test('the CLI is detected', { skip }, async () => { // B-44, B-57
  assert.equal(await detectCli(), process.env['GEMINI_CLI_PATH']);
  const { installed, cliPath } = await getCapabilities('gemini');
  assert.deepEqual([installed, cliPath], [true, process.env['GEMINI_CLI_PATH']]);
});

test('a project without sessions is an error', { skip }, async () => { // B-42
  const { workingDir } = await place('talk');
  for (const projectPath of [workingDir, path.join(workingDir, 'gone')]) {
    for (const sessionId of [undefined, 'nosuch']) {
      await assert.rejects(loadMessages({ projectPath, sessionId }), { message: `No Gemini session found for project: ${projectPath}` });
    }
  }
});
