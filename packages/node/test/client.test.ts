// The client without the CLI: stand-ins say what `alhena chat --control` would.

import assert from 'node:assert/strict';
import { mkdtemp, readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { before, test } from 'node:test';

import { AlhenaError, BinaryNotFoundError, Client, CommandFailedError, type CanUseTool, type ClientOptions, type PermissionResult, type QueryMessage } from 'alhena';

const BEGUN = '{"type": "control_response", "response": {"subtype": "success", "request_id": "1", "response": {}}}';
let scratch: string;

before(async () => {
  scratch = await mkdtemp(path.join(tmpdir(), 'alhena-client-'));
});

async function client(script: string, options: ClientOptions = {}): Promise<Client> {
  const binary = path.join(await mkdtemp(path.join(scratch, 'p-')), 'alhena');
  await writeFile(binary, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  return new Client({ binary, ...options });
}

async function all(client: Client): Promise<QueryMessage[]> {
  const messages: QueryMessage[] = [];
  for await (const message of client.receiveMessages()) messages.push(message);
  return messages;
}

test('what makes no sense is refused before anything starts', async () => {
  for (const wrong of [null, { record: 'x' }, { sessionId: 'x' }, { canUseTool: true }]) {
    assert.throws(() => new Client(wrong as unknown as ClientOptions), { kind: 'usage' });
  }
  const unconnected = new Client();
  await assert.rejects(unconnected.interrupt(), { kind: 'usage', message: 'the client is not connected' });
  await assert.rejects(unconnected.receiveResponse().next(), { kind: 'usage' });
  await assert.rejects(unconnected.ask(7 as unknown as string), { kind: 'usage', message: 'the prompt must be a string, got: number' });
  await assert.rejects(new Client({ allowTools: 'x' as unknown as string[] }).connect(), { kind: 'usage' });
  await assert.rejects(new Client({ signal: AbortSignal.abort() }).connect(), { kind: 'cancelled' });
  await unconnected.close();
});

test('one that does not begin says why', async () => {
  const fails = async (script: string, expected: object) => assert.rejects((await client(script)).connect(), expected);
  await fails("echo 'error: no' >&2; exit 2", { name: 'CommandFailedError', kind: 'usage', message: 'no', exitCode: 2 });
  await fails('exit 0', CommandFailedError);
  await fails('echo rubbish; exec sleep 60', { kind: 'protocol' });
  await fails(`echo '{"type": "control_response"}'; exec sleep 60`, { kind: 'protocol' });
  await assert.rejects(new Client({ binary: path.join(scratch, 'missing') }).connect(), BinaryNotFoundError);
});

test('one that dies is an error for everybody who waits', async () => {
  const talk = await client(`read line; echo '${BEGUN}'; read line; kill -9 $$`);
  await talk.connect();
  const receiving = assert.rejects(talk.receiveResponse().next(), CommandFailedError);
  await assert.rejects(talk.interrupt(), CommandFailedError);
  await receiving;
  await assert.rejects(talk.query('hello'), CommandFailedError);
  await talk.close();
});

test('whoever waits while it is closed is not left waiting, and an abort closes it', async () => {
  const script = `read line; echo '${BEGUN}'; while :; do sleep 0.1; done`;
  const talk = await client(script);
  await talk.connect();
  await assert.rejects(talk.connect(), { kind: 'usage' });
  const waiting = all(talk);
  const changing = assert.rejects(talk.setModel('x'), { kind: 'disconnected' });
  await talk.close();
  assert.deepEqual(await waiting, []);
  await changing;
  await talk.close();

  const controller = new AbortController();
  const aborted = await client(script, { signal: controller.signal });
  await aborted.connect();
  const received = assert.rejects(all(aborted), { kind: 'cancelled' });
  controller.abort();
  await received;
  await aborted.close();
});

test('a decision that fails is a no', async () => {
  const question = (at: number) => JSON.stringify({
    type: 'control_request', request_id: `alhena-${at}`,
    request: { subtype: 'can_use_tool', tool_name: 'Bash', input: {}, tool_use_id: 't', title: 'ls', new: 1 },
  });
  const heard = path.join(scratch, 'heard');
  const ask = (at: number) => `echo '${question(at)}'; read line; echo "$line" >> ${heard}`;
  let asked = 0;
  const canUseTool: CanUseTool = (tool, _, { toolUseID, title, signal }) => {
    assert.deepEqual([tool, toolUseID, title, signal.aborted], ['Bash', 't', 'ls', false]);
    if (asked++ === 0) throw new Error('no idea');
    return (asked === 2 ? true : { behavior: 'deny', message: 'no \ud800' }) as unknown as PermissionResult;
  };
  const warned: Error[] = [];
  process.on('warning', (warning) => warned.push(warning));
  const talk = await client(`read line; echo '${BEGUN}'; ${ask(1)}; ${ask(2)}; ${ask(3)}; exit 0`, { canUseTool });
  await talk.connect();
  await assert.rejects(all(talk), AlhenaError);
  await talk.close();
  const said = (await readFile(heard, 'utf8')).trim().split('\n').map((line) => (JSON.parse(line) as { response: { subtype: string; error?: string; response?: object } }).response);
  assert.deepEqual(said.map(({ subtype }) => subtype), ['error', 'error', 'success']);
  assert.equal(said[0]?.error, 'Error: no idea');
  // What is no text would not be read.
  assert.deepEqual(said[2]?.response, { behavior: 'deny', message: 'no \ufffd' });
  assert.deepEqual(warned.map(({ name }) => name), ['AlhenaWarning', 'AlhenaWarning']);
});
