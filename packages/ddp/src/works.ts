// Code that waits for operations is written once, as a generator of them, and driven in one of two ways.
import type { Work } from '@ringwise/collectives';

export type Works = Generator<Work, void, void>;

/** Blocks at each operation; throws the first error, also from inside the generator. */
export function runBlocking(works: Works): void {
  for (const work of works) work.fence();
}

/** The same without blocking. */
export async function runAwaiting(works: Works): Promise<void> {
  for (const work of works) await work;
}
