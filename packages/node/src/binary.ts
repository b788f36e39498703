/** Where the program `alhena` is. */

import { accessSync, constants, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';

import { BinaryNotFoundError, UnsupportedPlatformError } from './errors.js';
import { hasMusl, packagesFor, supported } from './platforms.js';

const NAME = 'alhena';

/**
 * The program `alhena`: the one that ALHENA_BIN names, else the package's own, else the one on PATH. Never one that happens to
 * be in the working directory: relative entries of PATH are left out.
 */
export function findBinary(env: NodeJS.ProcessEnv = process.env): string {
  return find(env, process.platform, process.arch);
}

/** The same on any system. */
export function find(env: NodeJS.ProcessEnv, os: string, cpu: string): string {
  const named = env['ALHENA_BIN'];
  if (named) {
    if (!path.isAbsolute(named)) throw new BinaryNotFoundError(`ALHENA_BIN is no absolute path: ${named}`);
    if (!isProgram(named)) throw new BinaryNotFoundError(`ALHENA_BIN names no program: ${named}`);
    return named;
  }
  const entries = (env['PATH'] ?? '').split(path.delimiter).filter((entry) => path.isAbsolute(entry));
  const packages = packagesFor(os, cpu);
  const own = packages.map(binaryIn).filter((file) => file !== undefined);
  if (own.length > 1 && hasMusl()) own.reverse();
  const found = [...own, ...entries.map((entry) => path.join(entry, NAME))].find(isProgram);
  if (found) return found;
  if (packages.length === 0) {
    throw new UnsupportedPlatformError(`alhena does not run on ${os} ${cpu}: there are packages for ${supported()}`, os);
  }
  throw new BinaryNotFoundError(`alhena not found: neither the package ${packages.join(' or ')} nor PATH has it`);
}

/** The one in a package, if that is installed. */
function binaryIn(name: string): string | undefined {
  try {
    const manifest = createRequire(import.meta.url).resolve(`${name}/package.json`);
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
