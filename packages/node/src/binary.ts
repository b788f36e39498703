/** Where the program `alhena` is. */

import { accessSync, constants, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';

import { BinaryNotFoundError } from './errors.js';

const NAME = process.platform === 'win32' ? 'alhena.exe' : 'alhena';

/**
 * The program `alhena`: the one that ALHENA_BIN names, else the package's own, else the one on PATH. Never one that happens to
 * be in the working directory: relative entries of PATH are left out.
 */
export function findBinary(env: NodeJS.ProcessEnv = process.env): string {
  const named = env['ALHENA_BIN'];
  if (named) {
    if (!path.isAbsolute(named)) throw new BinaryNotFoundError(`ALHENA_BIN is no absolute path: ${named}`);
    if (!isProgram(named)) throw new BinaryNotFoundError(`ALHENA_BIN names no program: ${named}`);
    return named;
  }
  const entries = (env['PATH'] ?? '').split(path.delimiter).filter((entry) => path.isAbsolute(entry));
  const found = [ownBinary(), ...entries.map((entry) => path.join(entry, NAME))].find((file) => file && isProgram(file));
  if (found) return found;
  const platform = `@alhena/cli-${process.platform}-${process.arch}`;
  throw new BinaryNotFoundError(`alhena not found: neither the package ${platform} nor PATH has it`);
}

/** The one in the package for this platform. */
function ownBinary(): string | undefined {
  try {
    const manifest = createRequire(import.meta.url).resolve(`@alhena/cli-${process.platform}-${process.arch}/package.json`);
    return path.join(path.dirname(manifest), 'bin', NAME);
  } catch {
    return undefined;
  }
}

function isProgram(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}
