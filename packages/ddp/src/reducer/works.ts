// Code that waits for operations is written once, as a generator of them, and driven in one of two ways.
import type { Work } from '@ringwise/collectives';
import { namingSnapshot } from '../snapshot/mismatch.ts';

export type Works = Generator<Work, void, void>;

/** Blocks at each operation; throws the first error, also from inside the generator. */
export function runBlocking(works: Iterable<Work>): void {
  try {
    for (const work of works) work.fence();
  } catch (error) {
    throw namingSnapshot(error);
  }
}

/** The same without blocking. */
export async function runAwaiting(works: Iterable<Work>): Promise<void> {
  try {
    for (const work of works) await work;
  } catch (error) {
    throw namingSnapshot(error);
  }
}
