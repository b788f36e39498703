/** The packages with the program, one for each platform. */

import { createRequire } from 'node:module';

/** A row of the table in `platforms.json`, which the packages are built from, too. */
interface Platform {
  package: string;
  /** Node's names for the system and the processor. */
  os: string;
  cpu: string;
  /** Of Linux, whose C library the program is made for. */
  libc?: 'glibc' | 'musl';
}

const PLATFORMS = createRequire(import.meta.url)('../../platforms.json') as Platform[];

/** The packages that a platform can have, the one for musl last; none where `alhena` does not run. */
export function packagesFor(os: string, cpu: string): string[] {
  const fitting = PLATFORMS.filter((platform) => platform.os === os && platform.cpu === cpu);
  return fitting.sort((a, b) => Number(a.libc === 'musl') - Number(b.libc === 'musl')).map((platform) => platform.package);
}

/** What there are packages for, for people. */
export function supported(): string {
  return [...new Set(PLATFORMS.map(({ os, cpu }) => `${os} ${cpu}`))].join(', ');
}

/** Whether this machine's C library is musl. Takes its time, so it is asked only where both packages are installed. */
export function hasMusl(): boolean {
  const report = process.report?.getReport() as { header?: { glibcVersionRuntime?: string } } | undefined;
  return report?.header?.glibcVersionRuntime === undefined;
}
