#!/usr/bin/env node
// `npx alhena`: the program itself, with the terminal that this one has.

import { spawn } from 'node:child_process';

import { AlhenaError, findBinary } from '../dist/src/index.js';

try {
  const child = spawn(findBinary(), process.argv.slice(2), { stdio: 'inherit' });
  // It gets them too, and decides when it is over.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
  child.on('exit', (code, signal) => {
    if (signal) {
      process.removeAllListeners(signal);
      process.kill(process.pid, signal);
    } else {
      process.exitCode = code ?? 1;
    }
  });
} catch (error) {
  if (!(error instanceof AlhenaError)) throw error;
  console.error(`error: ${error.message}\nhint: ${error.hint}`);
  process.exitCode = 127;
}
