/** What can go wrong. Every error has a kind, a message that begins with its reason, and a hint that says what to do. */

import type { Failure, FailureKind } from './alhena.js';
import type { ResultMessage } from './messages.js';
import { OPTION_OF } from './run-options.js';

/** A message of `alhena` with the options of this package in place of the settings that it names. */
export function withOptions(text: string): string {
  return text.replace(/`([a-z_]+)`/g, (name, setting: string) => (Object.hasOwn(OPTION_OF, setting) ? `\`${OPTION_OF[setting]}\`` : name));
}

/** Why a run failed. Messages of Gemini CLI and of the API stay as they are; a run that never began has none. */
function reason({ kind, message, exit_code, http_status }: Failure): string {
  const own = kind === 'budget' || (kind === 'input' && exit_code === undefined && http_status === undefined);
  return own ? withOptions(message) : message;
}

/** The kinds of failure of a run, and those of this package. */
export type ErrorKind = FailureKind | 'binary_not_found' | 'unsupported_platform' | 'usage' | 'failed' | 'disconnected' | (string & {});

/** The base of all errors of this package. */
export class AlhenaError extends Error {
  override readonly name: string = 'AlhenaError';
  /** What kind of failure it is, such as `auth` or `timeout`; `alhena help exit-codes` lists those of a run. */
  readonly kind: ErrorKind;
  /** What can be done about it; may be empty. */
  readonly hint: string;
  /** The exit code of `alhena`, where it ran. */
  readonly exitCode: number | undefined;

  constructor(kind: ErrorKind, message: string, hint = '', exitCode?: number) {
    super(message);
    this.kind = kind;
    this.hint = hint;
    this.exitCode = exitCode;
  }
}

/** The program `alhena` is not there, or cannot be started. */
export class BinaryNotFoundError extends AlhenaError {
  override readonly name: string = 'BinaryNotFoundError';

  constructor(
    message: string,
    hint = 'Install the package `alhena` with its optional dependencies, or say where it is by ALHENA_BIN.',
    kind: ErrorKind = 'binary_not_found',
  ) {
    super(kind, message, hint);
  }
}

/** There is no `alhena` for this system and processor. */
export class UnsupportedPlatformError extends BinaryNotFoundError {
  override readonly name = 'UnsupportedPlatformError';

  constructor(message: string, os: string) {
    const hint = os === 'win32' ? 'Run Node in WSL, where it is Linux.' : 'A program that you built yourself is named by ALHENA_BIN.';
    super(message, hint, 'unsupported_platform');
  }
}

/** `alhena` refused what it was asked, or answered what nobody understands. */
export class CommandFailedError extends AlhenaError {
  override readonly name = 'CommandFailedError';
}

/** A run did not succeed. Comes after the run's result, which says the same and more. */
export class RunFailedError extends AlhenaError {
  override readonly name = 'RunFailedError';
  /** The result of the run. */
  readonly result: ResultMessage;

  constructor(result: ResultMessage, exitCode: number | undefined) {
    const failure = result.failure;
    const message = failure ? reason(failure) : `the run ended with ${result.subtype}`;
    super(failure?.kind ?? result.subtype, message, withOptions(failure?.hint ?? ''), exitCode);
    this.result = result;
  }
}
