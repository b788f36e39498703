/** Starting `alhena`, and reading what it prints. */

import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { createInterface } from 'node:readline';

import { findBinary } from './binary.js';
import { AlhenaError, BinaryNotFoundError, CommandFailedError, withOptions } from './errors.js';

/** What an `alhena` that has ended said. */
export interface Finished {
  /** The exit code; 1 when a signal ended it. */
  exitCode: number;
  stdout: string;
  stderr: string;
}

export interface Start {
  args: readonly string[];
  /** What it reads; `null` leaves that open for `write`. */
  input?: string | null;
  /** All its variables; those of this process when absent. */
  env?: NodeJS.ProcessEnv | undefined;
  /** The `alhena` to run; by default it is looked for. */
  binary?: string | undefined;
  /** Stops `alhena`, and with it the agent and everything that it started. */
  signal?: AbortSignal | undefined;
  onStart?: ((process: ChildProcess) => void) | undefined;
  onStdout?: ((chunk: string) => void) | undefined;
  onStderr?: ((chunk: string) => void) | undefined;
}

/** An `alhena` that runs. Its lines have to be read, or it stopped. */
export interface Running {
  lines: AsyncIterable<string>;
  /** Resolves when it has ended; `stdout` is empty. Rejects only when it could not be started. */
  finished: Promise<Finished>;
  /** Says something to one that was started with an open input. One that has ended does not hear it. */
  write(text: string): void;
  /** Stops it, and resolves when nothing of it is left. */
  stop(): Promise<void>;
}

/** It stops everything that it started; this long it is waited for. Then its keeper does. */
const PATIENCE_MS = 60_000;
/** Of what it says on stderr, so much is kept. */
const MOST_STDERR = 1 << 20;

/** Starts `alhena`. Never through a shell. */
export function start(options: Start): Running {
  check(options);
  const child = spawnAlhena(options);
  let patience: NodeJS.Timeout | undefined;
  const terminate = () => {
    child.kill('SIGTERM');
    patience ??= setTimeout(() => child.kill('SIGKILL'), PATIENCE_MS);
    patience.unref();
  };
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
    stderr = (stderr + chunk).slice(-MOST_STDERR);
    options.onStderr?.(chunk);
  });
  child.stdout.setEncoding('utf8');
  if (options.onStdout) child.stdout.on('data', options.onStdout);
  const finished = new Promise<Finished>((resolve, reject) => {
    const over = () => {
      clearTimeout(patience);
      options.signal?.removeEventListener('abort', terminate);
    };
    child.on('error', (error) => {
      over();
      reject(new BinaryNotFoundError(`alhena cannot be started: ${error.message}`));
    });
    child.on('close', (code) => {
      over();
      resolve({ exitCode: code ?? 1, stdout: '', stderr });
    });
  });
  // Whoever reads only the lines learns it there.
  finished.catch(() => {});
  const lines = createInterface({ input: child.stdout, crlfDelay: Infinity });
  // It may end before it has read everything; its exit code says why.
  child.stdin.on('error', () => {});
  if (options.input !== null) child.stdin.end(options.input ?? '');
  if (options.signal?.aborted) terminate();
  else options.signal?.addEventListener('abort', terminate, { once: true });
  options.onStart?.(child);
  return {
    lines,
    finished,
    write: (text) => void child.stdin.write(text),
    async stop() {
      terminate();
      child.stdout.resume();
      await finished.catch(() => {});
    },
  };
}

/** What is wrong is told before anything is started. */
function check({ input, signal }: Start): void {
  if (input !== undefined && input !== null && typeof input !== 'string') throw new AlhenaError('usage', `the prompt must be a string, got: ${typeof input}`);
  if (signal !== undefined && !(signal instanceof AbortSignal)) throw new AlhenaError('usage', 'the signal must be an AbortSignal');
  if (signal?.aborted) throw cancelled();
}

/** The error of a run that was over before it could say so itself. */
export function cancelled(): AlhenaError {
  return new AlhenaError('cancelled', 'The run was cancelled', 'It was stopped on purpose.', 130);
}

function spawnAlhena(options: Start) {
  const env = options.env ?? process.env;
  const program = options.binary ?? findBinary(env);
  try {
    return spawn(program, [...options.args], { env, stdio: ['pipe', 'pipe', 'pipe'] });
  } catch (error) {
    // Such as a zero byte in an argument or a variable.
    throw new AlhenaError('usage', error instanceof Error ? error.message : String(error));
  }
}

/** Runs `alhena` to its end. */
export async function communicate(options: Start): Promise<Finished> {
  let stdout = '';
  const running = start({
    ...options,
    onStdout: (chunk) => {
      stdout += chunk;
    },
  });
  return { ...(await running.finished), stdout };
}

/** The same, while everything else waits. */
export function communicateSync({ args, input, env = process.env, binary }: Start): Finished {
  const done = spawnSync(binary ?? findBinary(env), [...args], { input: input ?? '', env, encoding: 'utf8', maxBuffer: 1 << 30 });
  if (done.error) throw new BinaryNotFoundError(`alhena cannot be started: ${done.error.message}`);
  return { exitCode: done.status ?? 1, stdout: done.stdout, stderr: done.stderr };
}

/** The JSON that it answered; its own words where it refused. */
export function answer(done: Finished): unknown {
  if (done.exitCode !== 0) throw refused(done);
  return json(done.stdout);
}

/** The error of an `alhena` that came to no answer: its own words say why. */
export function refused({ exitCode, stdout, stderr }: Finished): CommandFailedError {
  const kind = exitCode === 2 ? 'usage' : 'failed';
  const told = inJson(stdout);
  if (told) return new CommandFailedError(kind, withOptions(told.message), withOptions(told.hint ?? ''), exitCode);
  const [first, ...rest] = stderr.split('\n').filter((line) => line.trim());
  const message = first?.replace(/^error: /, '') ?? `alhena ended with exit code ${exitCode} and said nothing`;
  const hint = rest.map((line) => line.replace(/^hint: /, '')).join('\n');
  return new CommandFailedError(kind, message, hint, exitCode);
}

/** A command that was asked for JSON says in JSON what is wrong, too. */
function inJson(stdout: string): { message: string; hint?: string } | undefined {
  try {
    return (JSON.parse(stdout) as { error?: { message: string; hint?: string } }).error;
  } catch {
    return undefined;
  }
}

/** JSON as `alhena` prints it. */
export function json(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    throw new CommandFailedError('protocol', `alhena answered what is no JSON: ${String(error)}`);
  }
}
