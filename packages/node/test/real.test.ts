// On the real Gemini CLI, with a scripted API that `cargo xtask test real_hosts` starts.

import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';

import { AlhenaError, ask, Client, detect, listSessions, loadMessages, query, RunFailedError, type Message, type QueryMessage, type QueryOptions } from 'alhena';

import { OPTION_OF, type RunOptions } from '../src/run-options.js';

const scenarios = JSON.parse(process.env['ALHENA_TEST_SCENARIOS'] ?? '{}') as Record<string, string>;
const skip = Object.keys(scenarios).length === 0 && 'needs ALHENA_TEST_SCENARIOS';

async function place(scenario: string): Promise<QueryOptions & { cwd: string }> {
  const cwd = await mkdtemp(path.join(process.env['ALHENA_TEST_WORK'] ?? '', 'node-'));
  return { cwd, trust: true, model: 'gemini-2.5-flash', env: { GOOGLE_GEMINI_BASE_URL: scenarios[scenario] } };
}

test('a run is told message by message, and is in the store afterwards', { skip }, async () => {
  const options = await place('write');
  const told: QueryMessage[] = [];
  for await (const message of query('- write it', { ...options, approval: 'auto-edit', timeout: 120_000 })) told.push(message);
  assert.deepEqual(told.map(({ type }) => type), ['system', 'user', 'assistant', 'user', 'assistant', 'result']);
  const result = told.at(-1);
  assert.ok(result?.type === 'result');
  assert.deepEqual([result.subtype, result.result, result.files.map(({ path }) => path)], ['success', 'I wrote it.', ['made.txt']]);
  assert.equal(await readFile(path.join(options.cwd, 'made.txt'), 'utf8'), 'made\n');
  assert.deepEqual((await listSessions(options)).map(({ id }) => id), [result.session_id]);
  const record = (message: Message) => message._original;
  assert.deepEqual((await loadMessages(options)).map(record), result.messages.map(record));
  assert.equal((await detect(options))?.path, process.env['GEMINI_CLI_PATH']);
});

test('a failed or refused tool is told the same way while streaming and at the end', { skip }, async () => {
  const options = { ...(await place('failing')), allowTools: ['run_shell_command'], includePartialMessages: true };
  const told: QueryMessage[] = [];
  for await (const message of query('Try', options)) told.push(message);
  const result = told.at(-1);
  assert.ok(result?.type === 'result');
  const partial = told.flatMap((message) => (message.type === 'partial' ? [message.message] : []));
  const whole = told.flatMap((message) => (message.type === 'user' || message.type === 'assistant' ? [message.message] : []));
  assert.deepEqual([...new Map(partial.map((message) => [message.id, message])).values()], result.messages);
  assert.deepEqual(whole.map(({ id }) => id), result.messages.map(({ id }) => id));
  const results = (messages: Message[]) => messages
    .flatMap(({ content }) => (typeof content === 'string' ? [] : content))
    .flatMap((block) => (block.type === 'tool_result' ? [[block.tool_use_id, block.is_error, block.exit_code]] : []));
  // From the first time that it is told.
  const inTheEnd = results(result.messages);
  assert.deepEqual(new Set(results(partial).map(String)), new Set(inTheEnd.map(String)));
  assert.deepEqual(results(whole), inTheEnd);
  // A command that failed is an error with an exit code.
  const flags = [[true, 3], [true, undefined], [true, undefined]];
  assert.deepEqual(inTheEnd.map(([, isError, exitCode]) => [isError, exitCode]), [...flags, ...flags]);
});

test('failures have a kind, their reason first, and a hint', { skip }, async () => {
  const failed = async (options: QueryOptions) => {
    const error: unknown = await ask('Go', options).catch((error: unknown) => error);
    assert.ok(error instanceof RunFailedError);
    assert.ok(error.hint);
    return [error.kind, error.message, error.exitCode];
  };
  assert.deepEqual(await failed(await place('refused')), ['input', 'Bad argument.', 1]);
  assert.deepEqual((await failed({ ...(await place('talk')), trust: false }))[0], 'untrusted');
  assert.deepEqual(await failed({ ...(await place('hang')), timeout: 8000 }), ['timeout', 'The run took longer than 8 s', 124]);
});

test('errors name the option with the bad value', { skip }, async () => {
  const options = await place('write');
  const at = (name: string) => path.join(options.cwd, name);
  await mkdir(at('full'));
  await writeFile(at('full/file'), '');
  await writeFile(at('bad.json'), '[1]');
  const bad: { [name in keyof Required<RunOptions>]?: unknown } = {
    cwd: at('missing'), approval: 'x', trust: 'x', sandbox: 'x', includeDirs: [at('missing')], allowTools: ['run_shell_command('],
    denyTools: ['run_shell_command('], policies: [at('missing')], mcpServers: at('missing'), systemPromptMode: 'x',
    resume: '', sessionId: 'no/good', timeout: 0, firstEventTimeout: 'soon', stallTimeout: -1, maxTurns: 0, maxAttempts: 0,
    maxTokens: 0, maxCost: 0, maxCalls: 0, schema: at('missing'), schemaAttempts: -1, record: at('full'), extraArgs: '--debug',
    offline: at('bad.json'), gemini: at('missing'),
  };
  // Any text is a model or a prompt, and these are no options of the command.
  const without = ['model', 'systemPrompt', 'env', 'useConfig'];
  const all = new Set(Object.keys(OPTION_OF).map((setting) => OPTION_OF[setting] ?? ''));
  for (const name of [...Object.keys(bad), ...without]) assert.ok(all.has(name), name);
  for (const [name, value] of Object.entries(bad)) {
    const more = { ...(name === 'systemPromptMode' && { systemPrompt: 'Be brief.' }), ...(name === 'schemaAttempts' && { schema: {} }) };
    const error: unknown = await ask('Go', { ...options, ...more, [name]: value } as QueryOptions).catch((error: unknown) => error);
    assert.ok(error instanceof AlhenaError, name);
    assert.match(`${error.message} ${error.hint}`, new RegExp(`\\b${name}\\b`));
    assert.doesNotMatch(`${error.message} ${error.hint}`, new RegExp(`--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`));
  }
});

test('an abort and a break end the run', { skip }, async () => {
  const controller = new AbortController();
  await assert.rejects(async () => {
    for await (const message of query('Go', { ...(await place('hang')), signal: controller.signal, includeEvents: true })) {
      if (message.type === 'stream_event' && message.event.type === 'text') controller.abort();
    }
  }, { kind: 'cancelled', exitCode: 130 });
  for await (const message of query('Go', { ...(await place('hang')), includePartialMessages: true })) {
    if (message.type === 'partial' && message.message.role === 'assistant') break;
  }
});

test('a conversation has turns and its program decides', { skip }, async () => {
  const options = await place('conversation');
  const asked: unknown[] = [];
  const client = new Client({
    ...options,
    includePartialMessages: true,
    canUseTool: (tool, input, { toolUseID }) => {
      asked.push([tool, input, toolUseID]);
      return tool === 'Write' ? { behavior: 'allow' } : { behavior: 'deny', message: 'not here' };
    },
  });
  try {
    await client.query('- write');
    const first: QueryMessage[] = [];
    for await (const message of client.receiveResponse()) first.push(message);
    assert.deepEqual(first.filter(({ type }) => type !== 'partial').map(({ type }) => type), ['system', 'user', 'assistant', 'user', 'assistant', 'result']);
    const result = first.at(-1);
    assert.ok(result?.type === 'result');
    assert.deepEqual([result.result, result.files.map(({ path }) => path)], ['Written.', ['b.txt']]);
    // The last one of each id is the one in the result, and it was asked about what is told.
    const grown = first.flatMap((message) => (message.type === 'partial' ? [message.message] : []));
    assert.deepEqual([...new Map(grown.map((message) => [message.id, message])).values()], result.messages);
    const call = result.messages.flatMap(({ content }) => (typeof content === 'string' ? [] : content)).find((block) => block.type === 'tool_use');
    assert.deepEqual(asked, [[call?.name, call?.input, call?.id]]);

    const denied = await client.ask('shell');
    const blocks = denied.messages.flatMap(({ content }) => (typeof content === 'string' ? [] : content));
    const refusal = blocks.find((block) => block.type === 'tool_result');
    assert.ok(refusal?.is_error && JSON.stringify(refusal.content).includes('not here'));

    await client.query('hang');
    let last: QueryMessage | undefined;
    for await (const message of client.receiveResponse()) {
      last = message;
      if (message.type === 'partial' && message.message.role === 'assistant') await client.interrupt();
    }
    assert.ok(last?.type === 'result');
    assert.deepEqual([last.subtype, last.is_error], ['cancelled', true]);

    await client.setModel('gemini-2.5-pro');
    await client.setPermissionMode('auto-edit');
    await assert.rejects(client.setPermissionMode('fly' as 'plan'), { kind: 'usage' });
    const back = await client.ask('go on');
    assert.deepEqual([back.result, back.files.map(({ path }) => path)], ['Back.', ['c.txt']]);
    await assert.rejects(client.ask(''), { name: 'RunFailedError', message: 'the prompt is empty' });
    assert.equal(client.sessionId, back.session_id);
  } finally {
    await client.close();
  }
  assert.equal(asked.length, 2);
  assert.equal((await listSessions(options)).length, 1);
});

test('a client that is closed or aborted in a turn stops it, and one that cannot begin says why', { skip }, async () => {
  const working = async (client: Client) => {
    await client.query('Go');
    for await (const message of client.receiveResponse()) if (message.type === 'partial' && message.message.role === 'assistant') return;
  };
  const options = { ...(await place('hang')), includePartialMessages: true };
  const closed = new Client(options);
  await working(closed);
  await closed.close();

  const controller = new AbortController();
  const aborted = new Client({ ...options, signal: controller.signal });
  await working(aborted);
  controller.abort();
  await assert.rejects(async () => {
    for await (const message of aborted.receiveMessages()) assert.ok(message);
  }, { kind: 'cancelled' });
  await aborted.close();

  await assert.rejects(new Client({ ...options, gemini: '/nonexistent/gemini' }).connect(), { name: 'RunFailedError', kind: 'not_installed', exitCode: 3 });
});
