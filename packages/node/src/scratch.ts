import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';

/** A directory that is gone when the work in it is done. */
export async function withScratch<R>(work: (scratch: string) => Promise<R>): Promise<R> {
  const { scratch, remove } = await makeScratch();
  try {
    return await work(scratch);
  } finally {
    await remove();
  }
}

/** The same for generators, which have to remove it themselves. */
export async function makeScratch(): Promise<{ scratch: string; remove(): Promise<void> }> {
  const scratch = await mkdtemp(path.join(tmpdir(), 'alhena-node-'));
  return { scratch, remove: () => rm(scratch, { recursive: true, force: true }) };
}
