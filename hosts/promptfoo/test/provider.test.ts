// The provider without promptfoo and without the CLI: a stand-in says how it was called.

import assert from 'node:assert/strict';
import { chmod, mkdir, mkdtemp, readFile, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';

import { runArguments } from 'alhena/adapter';

import { fingerprintOf } from '../src/cache.js';
import { alhenaOptions, checked, unknownOptions } from '../src/config.js';
import byFile from '../src/file.js';
import * as module from '../src/index.js';
import { GeminiCli, type CallContext, type GeminiCliConfig, type Response } from '../src/index.js';

let scratch: string;
before(async () => {
  scratch = await mkdtemp(path.join(tmpdir(), 'provider-test-'));
  const program = path.join(scratch, 'alhena');
  await writeFile(
    program,
    `#!${process.execPath}
const { appendFileSync, readFileSync } = require('node:fs');
const prompt = readFileSync(0, 'utf8');
if (process.argv[2] === 'detect') {
  if (!process.env.FOUND) process.exit(3);
  console.log(JSON.stringify({ ...JSON.parse(process.env.FOUND), path: process.argv.find((word) => word.startsWith('--dir=')).slice(6) + '/gemini' }));
  process.exit(0);
}
appendFileSync(process.env.CALLS, 'x');
if (prompt === 'hang') {
  process.on('SIGTERM', () => { console.log(JSON.stringify({ error: 'Gemini CLI error: It was stopped', metadata: {}, raw: '' })); process.exit(130); });
  setInterval(() => {}, 1000);
} else if (prompt === 'mutter') { console.log('no room on disk'); process.exit(1); }
else if (prompt === 'silence') process.exit(1);
else if (prompt === 'break') { console.error('error: broken\\nhint: mend it'); process.exit(2); }
else if (prompt === 'fail') console.log(JSON.stringify({ error: 'Gemini CLI error: Exit code 41: no key', metadata: {}, raw: '' }));
else console.log(JSON.stringify({
  output: prompt, cost: 1, tokenUsage: { prompt: 3, completion: 2, total: 9, cached: 1, completionDetails: { reasoning: 4 } },
  metadata: { args: process.argv.slice(2), key: process.env.GEMINI_API_KEY, vertex: process.env.GOOGLE_GENAI_USE_VERTEXAI, project: process.env.GOOGLE_CLOUD_PROJECT, region: process.env.REGION }, raw: '',
}));
`,
  );
  await chmod(program, 0o755);
  process.env['ALHENA_BIN'] = program;
  process.env['CALLS'] = path.join(scratch, 'calls');
  await writeFile(process.env['CALLS'], '');
});
after(() => rm(scratch, { recursive: true }));

const calls = async () => (await readFile(process.env['CALLS'] ?? '', 'utf8')).length;
const told = (response: unknown) => (response as { metadata: { args: string[] } }).metadata;

function fakeCache(): { entries: Map<string, string>; context: CallContext } {
  const entries = new Map<string, string>();
  const cache = { get: async (key: string) => entries.get(key), set: async (key: string, value: string) => entries.set(key, value) };
  return { entries, context: { getCache: () => cache } };
}

test('the package has a named export and no default, and file:// gets the same as a default', () => {
  assert.deepEqual(Object.keys(module), ['GeminiCli']);
  assert.equal(byFile, GeminiCli);
});

test('names', () => {
  const provider = new GeminiCli();
  assert.equal(provider.id(), 'alhena:gemini-cli');
  assert.equal(String(provider), '[Google Gemini CLI Provider]'); // E-02
  assert.deepEqual(provider.config, {}); // E-03
  // The id that promptfoo gives is one that it can load again. E-01: with the change in upstream/ it is the plan's.
  for (const id of ['package:@alhena/promptfoo-gemini-cli:GeminiCli', 'google:gemini-cli', 'mine']) assert.equal(new GeminiCli({ id }).id(), id);
});

test('options become arguments', () => {
  const args = (config: Record<string, unknown>) => runArguments(alhenaOptions(checked(config), '/w'), scratch);
  const limits = (time: number) => [`--timeout=${time}ms`, `--first-event-timeout=${time}ms`, `--stall-timeout=${time}ms`];
  assert.deepEqual(args({}), ['--approval=default', ...limits(120000), '--dir=/w', '--trust']); // E-22
  const all = {
    model: 'm', approval_mode: 'suggest', include_directories: ['a', '/b'], sandbox: 'podman', disable_tools: ['x', 'y'], allow_tools: ['z'],
    timeout_ms: 5, mcp_settings_path: 'mcp.json', basePath: '/base', resume: 'id', session_id: 'new', max_turns: 3, system_prompt: null,
  };
  assert.deepEqual(args(all), [
    '--approval=default', ...limits(5), '--dir=/w', '--model=m', '--trust', '--sandbox=podman', '--include-dir=/base/a', '--include-dir=/b',
    '--allow-tool=z', '--deny-tool=x', '--deny-tool=y', '--mcp-server=/base/mcp.json', '--resume=id', '--session-id=new', '--max-turns=3',
  ]);
  const approval = (config: Record<string, unknown>) => args(config)[0];
  assert.equal(approval({ approval_mode: 'auto_edit' }), '--approval=auto-edit'); // E-08, E-14
  assert.equal(approval({ approval_mode: 'full_auto' }), '--approval=yolo');
  assert.equal(approval({ approval_mode: 'suggest', yolo: true }), '--approval=yolo'); // E-09, E-15
  assert.ok(args({ sandbox: false }).includes('--sandbox=off')); // E-12
});

test('misspelled options are a warning with a suggestion', () => {
  assert.deepEqual(unknownOptions({ aproval_mode: 'x', workingDir: 'y', timeout: 5, zzz: 1, model: 'm', basePath: '/' }), [
    'Gemini CLI has no option "aproval_mode"; did you mean approval_mode?',
    'Gemini CLI has no option "workingDir"; did you mean working_dir?',
    'Gemini CLI has no option "timeout"; did you mean timeout_ms?',
    'Gemini CLI has no option "zzz"',
  ]);
  const merged = { prefix: '', suffix: '', provider: {}, transform: 'x', rubricPrompt: 'y', storeOutputAs: 'z', metadata: {}, modle: 'm' };
  assert.deepEqual(unknownOptions(merged, 'prompt'), ['Gemini CLI has no option "modle"; did you mean model?']);
  const said: unknown[] = [];
  const warn = console.warn;
  console.warn = (text: unknown) => said.push(text);
  try {
    const config = { modle: 'm' } as GeminiCliConfig;
    new GeminiCli({ config });
    new GeminiCli({ config });
  } finally {
    console.warn = warn;
  }
  assert.deepEqual(said, ['Gemini CLI has no option "modle"; did you mean model?']);
});

test('a call gets the prompt, the options and the environment', async () => { // E-04, E-16 to E-18
  const provider = new GeminiCli({ config: { model: 'a', apiKey: 'k', useVertexAI: true, working_dir: scratch }, env: { REGION: 'eu' } });
  const response = (await provider.callApi('- hello', { prompt: { config: { model: 'b', googleCloudProject: 'p' } } })) as Response;
  assert.equal(response.output, '- hello');
  const { args, ...rest } = told(response);
  assert.deepEqual([args[0], args[1], args.at(-1)], ['run', '--as=promptfoo', '-']);
  assert.ok(args.includes(`--dir=${scratch}`) && args.includes('--model=b'), args.join(' '));
  assert.deepEqual(rest, { key: 'k', vertex: 'true', project: 'p', region: 'eu' });
});

test('a relative directory is relative to the config file, and without one there is an empty one that goes away', async () => { // E-19
  const config = { working_dir: 'sub', basePath: scratch };
  await mkdir(path.join(scratch, 'sub'));
  assert.ok(told(await new GeminiCli({ config }).callApi('hello')).args.includes(`--dir=${path.join(scratch, 'sub')}`));
  const directory = told(await new GeminiCli().callApi('hello')).args.find((word) => word.startsWith('--dir='))?.slice(6);
  await assert.rejects(readFile(directory ?? ''), { code: 'ENOENT' });
});

test('a CLI of the project is the one beside the config file, and an option names another', async () => { // E-37
  const gemini = async (config: GeminiCliConfig, place?: string) => {
    const env = { FOUND: place && JSON.stringify({ place }) };
    const response = await new GeminiCli({ config: { ...config, basePath: '/base' } as GeminiCliConfig, env }).callApi('hello');
    return told(response).args.find((word) => word.startsWith('--gemini='));
  };
  assert.equal(await gemini({}, 'project'), '--gemini=/base/gemini');
  assert.equal(await gemini({ working_dir: scratch }, 'project'), '--gemini=/base/gemini');
  assert.equal(await gemini({}, 'path'), undefined);
  assert.equal(await gemini({}), undefined);
  assert.equal(await gemini({ gemini_path: './bin/gemini' }, 'project'), '--gemini=/base/bin/gemini');
  assert.equal(await gemini({ gemini_path: '/opt/gemini' }, 'project'), '--gemini=/opt/gemini');
  assert.equal(await gemini({ gemini_path: '0.61.0' }, 'project'), '--gemini=0.61.0');
});

test('MCP servers of the configuration are passed by a file', async () => { // E-21
  const response = await new GeminiCli({ config: { mcp_servers: { files: { command: 'x' } } } }).callApi('hello');
  assert.ok(told(response).args.some((word) => /^--mcp-server=.*mcp\.json$/.test(word)));
});

test('whatever goes wrong is an error, never thrown', async () => { // E-26, E-27
  const error = async (config: unknown, prompt = 'hello', callOptions?: { abortSignal: AbortSignal }) =>
    (await new GeminiCli({ config: config as GeminiCliConfig }).callApi(prompt, undefined, callOptions)).error;
  assert.equal(await error({ approval_mode: 'always' }), 'Gemini CLI error: approval_mode must be one of suggest, auto_edit, full_auto, got: "always"');
  assert.equal(await error({ disable_tools: 'x' }), 'Gemini CLI error: disable_tools must be a list of strings, got: "x"');
  assert.equal(await error({ timeout_ms: 0 }), 'Gemini CLI error: timeout_ms must be a number > 0, got: 0');
  assert.equal(await error({ yolo: 'yes' }), 'Gemini CLI error: yolo must be true or false, got: "yes"');
  assert.equal(await error({ model: 3 }), 'Gemini CLI error: model must be a string, got: 3');
  assert.equal(await error({ resume: '../x' }), 'Gemini CLI error: resume must be the id of a session, got: "../x"');
  assert.equal(await error({}, 'break'), 'Gemini CLI error: Exit code 2: broken\nmend it');
  assert.equal(await error({}, 'mutter'), 'Gemini CLI error: Exit code 1: no room on disk');
  assert.equal(await error({}, 'silence'), 'Gemini CLI error: Exit code 1: alhena ended with exit code 1 and said nothing');
  assert.equal(await error({}, 'fail'), 'Gemini CLI error: Exit code 41: no key');
  assert.equal(await error({}, 'hello', { abortSignal: AbortSignal.abort() }), 'Gemini CLI error: The call was aborted before it began');
  const program = process.env['ALHENA_BIN'];
  process.env['ALHENA_BIN'] = path.join(scratch, 'missing');
  assert.equal(await error({}), `Gemini CLI error: ALHENA_BIN names no program: ${path.join(scratch, 'missing')}`);
  process.env['ALHENA_BIN'] = program;
});

test('an abort stops the process', async () => { // E-24, E-41
  const controller = new AbortController();
  const before = await calls();
  const call = new GeminiCli().callApi('hang', undefined, { abortSignal: controller.signal });
  while ((await calls()) === before) await new Promise((resolve) => setTimeout(resolve, 20));
  controller.abort();
  assert.match((await call).error ?? '', /^Gemini CLI error: (It was stopped|Exit code 1: )/);
});

test('the same call on the same files is made once, and then tells its tokens as cached', async () => { // E-45
  const directory = path.join(scratch, 'project');
  await mkdir(directory);
  await writeFile(path.join(directory, 'a.txt'), 'one');
  const provider = new GeminiCli({ config: { working_dir: directory } });
  const { context, entries } = fakeCache();
  const first = (await provider.callApi('hello', context)) as Response;
  assert.deepEqual([first.cached, first.cost, first.tokenUsage?.prompt], [undefined, 1, 3]);
  const made = await calls();
  const tokenUsage = { cached: 9, total: 9, numRequests: 1, completionDetails: { reasoning: 4 } };
  assert.deepEqual(await provider.callApi('hello', context), { ...first, cost: 0, tokenUsage, cached: true });
  assert.equal(await calls(), made);
  // Another prompt, other options, another repetition, another file, no caching: all of them are made.
  await provider.callApi('hello!', context);
  await provider.callApi('hello', { ...context, prompt: { config: { model: 'm' } } });
  await provider.callApi('hello', { ...context, repeatIndex: 1 });
  await provider.callApi('hello', { ...context, bustCache: true });
  await writeFile(path.join(directory, 'b.txt'), 'two');
  await provider.callApi('hello', context);
  await provider.callApi('hello', { ...context, prompt: { config: { resume: 'latest' } } });
  assert.equal(await calls(), made + 6);
  // Neither failures nor keys are kept.
  const kept = entries.size;
  await provider.callApi('fail', context);
  assert.equal(entries.size, kept);
  await new GeminiCli({ config: { working_dir: directory, apiKey: 'secret-key' } }).callApi('hello', context);
  assert.equal([...entries.keys()].join().includes('secret-key'), false);
});

test('the same options in another folder are another call when their paths are other files', async () => {
  const directory = path.join(scratch, 'based');
  await mkdir(directory);
  const { context } = fakeCache();
  const call = async (basePath: string, config: GeminiCliConfig, place?: string) => {
    const before = await calls();
    const given = { working_dir: directory, ...config, basePath } as GeminiCliConfig;
    await new GeminiCli({ config: given, env: { FOUND: place && JSON.stringify({ place }) } }).callApi('hello', context);
    return (await calls()) - before;
  };
  for (const config of [{ gemini_path: './bin/gemini' }, { include_directories: ['more'] }, { schema: 'schema.json' }]) {
    assert.deepEqual([await call('/a', config), await call('/b', config), await call('/a', config)], [1, 1, 0]);
  }
  // The project's own CLI is another one, too; a version and a command on PATH are the same anywhere.
  assert.deepEqual([await call('/a', {}, 'project'), await call('/b', {}, 'project'), await call('/a', {}, 'path')], [1, 1, 1]);
  assert.deepEqual([await call('/b', {}), await call('/a', { gemini_path: '0.61.0' }), await call('/b', { gemini_path: '0.61.0' })], [0, 1, 0]);
});

test('a fingerprint sees names, sizes and times, and not what git does', async () => {
  const directory = path.join(scratch, 'print');
  await mkdir(path.join(directory, '.git'), { recursive: true });
  await writeFile(path.join(directory, 'a'), 'one');
  await utimes(path.join(directory, 'a'), 1000, 1000);
  const first = await fingerprintOf(directory);
  await writeFile(path.join(directory, '.git', 'index'), 'x');
  assert.equal(await fingerprintOf(directory), first);
  await utimes(path.join(directory, 'a'), 1000, 2000);
  const second = await fingerprintOf(directory);
  assert.notEqual(second, first);
  await mkdir(path.join(directory, 'sub'));
  await writeFile(path.join(directory, 'sub', 'b'), '');
  assert.notEqual(await fingerprintOf(directory), second);
});
