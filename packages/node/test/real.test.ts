// On the real Gemini CLI, with a scripted API that `cargo xtask test real_hosts` starts.

import assert from 'node:assert/strict';
import { mkdtemp, readFile } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';

import { ask, detect, listSessions, loadMessages, query, RunFailedError, type Message, type QueryMessage, type QueryOptions } from 'alhena';

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
  assert.deepEqual(told.map(({ type }) => type), ['system', 'user', 'assistant', 'assistant', 'result']);
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
  // A command that failed has run: its exit code says how.
  const flags = [[false, 3], [true, undefined], [true, undefined]];
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
