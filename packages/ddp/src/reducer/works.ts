// Drivers for code that waits for operations. Such code is written once, as a generator of operations, and
// run in one of two ways.
import type { Work } from '@ringwise/collectives';
import { namingSnapshot } from '../snapshot/mismatch.ts';

export type Works = Generator<Work, void, void>;

/** Blocks at each operation. Throws the first error, also one from inside the generator. */
export function runBlocking(works: Iterable<Work>): void {
  try {
    for (const work of works) work.fence();
  } catch (error) {
    throw namingSnapshot(error);
  }
}

/** Like runBlocking(), but awaits each operation. */
export async function runAwaiting(works: Iterable<Work>): Promise<void> {
  try {
    for (const work of works) await work;
  } catch (error) {
    throw namingSnapshot(error);
  }
}
