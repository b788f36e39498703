/** Starting `alhena`, and reading what it prints. */

import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

export interface Ended {
  /** The exit code; 1 when a signal ended it. */
  exitCode: number;
  stdout: string;
  stderr: string;
}

export interface Start {
  args: string[];
  input?: string;
  cwd?: string | undefined;
  env?: NodeJS.ProcessEnv | undefined;
  /** Stops `alhena`, and with it the agent and everything that it started. */
  signal?: AbortSignal | undefined;
  /** Each line as it comes; without this, they are collected in `stdout`. */
  onLine?: (line: string) => void;
}

/** The program: `ALHENA_BIN`, or `alhena` on PATH. */
export function alhenaProgram(env: NodeJS.ProcessEnv = process.env): string {
  return env['ALHENA_BIN'] || 'alhena';
}

/** Runs `alhena` to its end. Rejects only when it cannot be started. */
export function alhena({ args, input = '', cwd, env = process.env, signal, onLine }: Start): Promise<Ended> {
  return new Promise((resolve, reject) => {
    const child = spawn(alhenaProgram(env), args, { cwd, env, stdio: ['pipe', 'pipe', 'pipe'] });
    const out: Buffer[] = [];
    const err: Buffer[] = [];
    const stop = () => child.kill('SIGTERM');
    if (onLine) {
      createInterface({ input: child.stdout, crlfDelay: Infinity }).on('line', onLine);
    } else {
      child.stdout.on('data', (data: Buffer) => out.push(data));
    }
    child.stderr.on('data', (data: Buffer) => err.push(data));
    child.on('error', (error: NodeJS.ErrnoException) => {
      signal?.removeEventListener('abort', stop);
      reject(error.code === 'ENOENT' ? new Error('alhena is not on PATH, and ALHENA_BIN does not say where it is') : error);
    });
    child.on('close', (code) => {
      signal?.removeEventListener('abort', stop);
      resolve({ exitCode: code ?? 1, stdout: Buffer.concat(out).toString('utf8'), stderr: Buffer.concat(err).toString('utf8') });
    });
    // It may end before it has read everything; its exit code says why.
    child.stdin.on('error', () => {});
    child.stdin.end(input);
    if (signal?.aborted) stop();
    else signal?.addEventListener('abort', stop, { once: true });
  });
}
