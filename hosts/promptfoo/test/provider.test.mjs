// The provider without promptfoo and without the CLI: `node --test`.

import assert from 'node:assert/strict';
import { chmod, mkdir, mkdtemp, readFile, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';

import GeminiCliProvider, { commandLine, fingerprintOf } from '../gemini-cli-provider.mjs';

let scratch;
before(async () => {
  scratch = await mkdtemp(path.join(tmpdir(), 'provider-test-'));
  // A stand-in that says how it was called.
  const program = path.join(scratch, 'alhena');
  await writeFile(
    program,
    `#!/usr/bin/env node
const { appendFileSync, readFileSync } = require('node:fs');
const prompt = readFileSync(0, 'utf8');
appendFileSync(process.env.CALLS, 'x');
if (prompt === 'hang') setInterval(() => {}, 1000);
else if (prompt === 'break') { console.error('broken'); process.exit(2); }
else if (prompt === 'fail') console.log(JSON.stringify({ error: 'Gemini CLI error: Exit code 41: no key', metadata: {}, raw: '' }));
else console.log(JSON.stringify({ output: prompt, metadata: { args: process.argv.slice(2), key: process.env.GEMINI_API_KEY, vertex: process.env.GOOGLE_GENAI_USE_VERTEXAI, project: process.env.GOOGLE_CLOUD_PROJECT, region: process.env.REGION }, raw: '' }));
`,
  );
  await chmod(program, 0o755);
  process.env.ALHENA_BIN = program;
  process.env.CALLS = path.join(scratch, 'calls');
  await writeFile(process.env.CALLS, '');
});
after(() => rm(scratch, { recursive: true }));

const calls = async () => (await readFile(process.env.CALLS, 'utf8')).length;

function fakeCache() {
  const entries = new Map();
  return { entries, context: { getCache: () => ({ get: (key) => entries.get(key), set: (key, value) => entries.set(key, value) }) } };
}

test('names', () => {
  const provider = new GeminiCliProvider();
  assert.equal(provider.id(), 'google:gemini-cli'); // E-01
  assert.equal(String(provider), '[Google Gemini CLI Provider]'); // E-02
  assert.deepEqual(provider.config, {}); // E-03
});

test('options become arguments', () => {
  assert.deepEqual(commandLine({}, '/w'), ['run', '--as', 'promptfoo', '--trust', '--dir=/w', '--timeout=120000ms']); // E-22
  const all = {
    model: 'm', approval_mode: 'suggest', include_directories: ['a', 'b'], sandbox: 'podman', disable_tools: ['x', 'y'], allow_tools: ['z'],
    timeout_ms: 5, mcp_settings_path: 'mcp.json', basePath: '/base', resume: 'id', session_id: 'new', system_prompt: '-brief', max_turns: 3,
  };
  assert.deepEqual(commandLine(all, '/w'), [
    'run', '--as', 'promptfoo', '--trust', '--dir=/w', '--timeout=5ms', '--model=m', '--approval=suggest', '--include-dir=a', '--include-dir=b',
    '--sandbox=podman', '--deny-tool=x', '--deny-tool=y', '--allow-tool=z', '--mcp-server=/base/mcp.json', '--session-id=new', '--resume=id',
    '--system-prompt=-brief', '--max-turns=3',
  ]);
  const one = (config) => commandLine(config, '/w').slice(6);
  assert.deepEqual(one({ yolo: true, approval_mode: 'auto_edit' }), ['--approval=yolo']); // E-09
  assert.deepEqual(one({ sandbox: false }), ['--sandbox=off']); // E-11
  assert.deepEqual(one({ sandbox: true, yolo: false }), ['--sandbox=on']);
});

test("a prompt's config overlays the provider's", async () => { // E-05, E-16 to E-18
  const provider = new GeminiCliProvider({
    config: { model: 'a', apiKey: 'k', useVertexAI: true, working_dir: scratch },
    env: { REGION: 'eu' },
  });
  const context = { prompt: { config: { model: 'b', googleCloudProject: 'p' } } };
  const response = await provider.callApi('- hello', context);
  assert.equal(response.output, '- hello');
  assert.deepEqual(response.metadata, {
    args: ['run', '--as', 'promptfoo', '--trust', `--dir=${scratch}`, '--timeout=120000ms', '--model=b', '-'],
    key: 'k', vertex: 'true', project: 'p', region: 'eu',
  });
});

test('without a working directory there is an empty one, and it goes away', async () => {
  const response = await new GeminiCliProvider().callApi('hello');
  const dir = response.metadata.args.find((word) => word.startsWith('--dir=')).slice(6);
  await assert.rejects(readFile(dir), { code: 'ENOENT' });
});

test('MCP servers of the configuration are passed by a file', async () => { // E-21
  const response = await new GeminiCliProvider({ config: { mcp_servers: { files: { command: 'x' } } } }).callApi('hello');
  assert.match(response.metadata.args.at(-2), /^--mcp-server=.*mcp\.json$/);
});

test('whatever goes wrong is an error, never thrown', async () => { // E-26, E-27
  const error = async (config, prompt = 'hello', callOptions) =>
    (await new GeminiCliProvider({ config }).callApi(prompt, undefined, callOptions)).error;
  assert.equal(await error({ approval_mode: 'always' }), 'Gemini CLI error: approval_mode must be one of suggest, auto_edit, full_auto, got: "always"');
  assert.equal(await error({ disable_tools: 'x' }), 'Gemini CLI error: disable_tools must be a list of strings, got: "x"');
  assert.equal(await error({ timeout_ms: 0 }), 'Gemini CLI error: timeout_ms must be a number > 0, got: 0');
  assert.equal(await error({ yolo: 'yes' }), 'Gemini CLI error: yolo must be true or false, got: "yes"');
  assert.equal(await error({ model: 3 }), 'Gemini CLI error: model must be a string, got: 3');
  assert.equal(await error({}, 'break'), 'Gemini CLI error: Exit code 2: broken\n');
  assert.equal(await error({}, 'fail'), 'Gemini CLI error: Exit code 41: no key');
  assert.equal(await error({}, 'hello', { abortSignal: AbortSignal.abort() }), 'Gemini CLI error: The call was aborted before it began');
  const program = process.env.ALHENA_BIN;
  process.env.ALHENA_BIN = path.join(scratch, 'missing');
  assert.equal(await error({}), 'Gemini CLI error: alhena is not on PATH, and ALHENA_BIN does not say where it is');
  process.env.ALHENA_BIN = program;
});

test('an abort stops the process', async () => { // E-24, E-41
  const controller = new AbortController();
  const call = new GeminiCliProvider().callApi('hang', undefined, { abortSignal: controller.signal });
  const before = await calls();
  while ((await calls()) === before) await new Promise((resolve) => setTimeout(resolve, 20));
  controller.abort();
  assert.equal((await call).error, 'Gemini CLI error: Exit code SIGTERM: ');
});

test('the same call on the same files is made once', async () => { // E-45
  const dir = path.join(scratch, 'project');
  await mkdir(dir);
  await writeFile(path.join(dir, 'a.txt'), 'one');
  const provider = new GeminiCliProvider({ config: { working_dir: dir } });
  const { context, entries } = fakeCache();
  const first = await provider.callApi('hello', context);
  assert.equal(first.cached, undefined);
  const made = await calls();
  assert.deepEqual(await provider.callApi('hello', context), { ...first, cached: true });
  assert.equal(await calls(), made);
  // Another prompt, other options, another repetition, another file, no caching: all of them are made.
  await provider.callApi('hello!', context);
  await provider.callApi('hello', { ...context, prompt: { config: { model: 'm' } } });
  await provider.callApi('hello', { ...context, repeatIndex: 1 });
  await provider.callApi('hello', { ...context, bustCache: true });
  await writeFile(path.join(dir, 'b.txt'), 'two');
  await provider.callApi('hello', context);
  await provider.callApi('hello', { ...context, prompt: { config: { resume: 'latest' } } });
  assert.equal(await calls(), made + 6);
  // Neither failures nor keys are kept.
  const kept = entries.size;
  await provider.callApi('fail', context);
  assert.equal(entries.size, kept);
  await new GeminiCliProvider({ config: { working_dir: dir, apiKey: 'secret-key' } }).callApi('hello', context);
  assert.equal([...entries.keys()].join().includes('secret-key'), false);
});

test('a fingerprint sees names, sizes and times, and not what git does', async () => {
  const dir = path.join(scratch, 'print');
  await mkdir(path.join(dir, '.git'), { recursive: true });
  await writeFile(path.join(dir, 'a'), 'one');
  await utimes(path.join(dir, 'a'), 1000, 1000);
  const first = await fingerprintOf(dir);
  await writeFile(path.join(dir, '.git', 'index'), 'x');
  assert.equal(await fingerprintOf(dir), first);
  await utimes(path.join(dir, 'a'), 1000, 2000);
  const second = await fingerprintOf(dir);
  assert.notEqual(second, first);
  await mkdir(path.join(dir, 'sub'));
  await writeFile(path.join(dir, 'sub', 'b'), '');
  assert.notEqual(await fingerprintOf(dir), second);
});
