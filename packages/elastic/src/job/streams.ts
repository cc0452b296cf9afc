// Random numbers inside a step: each micro-batch has a stream of its own, which depends on the seed, the step and the
// micro-batch, and not on the rank. So a step that is run again draws the same numbers, and so does the rank that takes
// over the samples of a lost one.
import { createHash } from 'node:crypto';
import type { MicroBatch } from '../ledger/ledger.ts';

/** The members of a generator of @ringwise/tensor that are used here. */
export interface StreamGenerator {
  /** Returns the position in the stream of numbers. */
  readonly state: () => { readonly seed: number; readonly offset: number };
  /** Continues at a position that state() returned. */
  readonly setState: (state: { readonly seed: number; readonly offset: number }) => void;
}

/** Returns the seed of generator `index` for a micro-batch: 53 bits of a SHA-256. */
export function seedOf(seed: number, { epoch, step, index: micro }: MicroBatch, index: number): number {
  const hash = createHash('sha256').update(`${seed} ${epoch} ${step} ${micro} ${index}`).digest();
  return Number(hash.readBigUInt64BE() >> 11n);
}

/** Sets all generators to the beginning of a micro-batch. */
export function beginMicroBatch(
  generators: readonly StreamGenerator[],
  seed: number,
  microBatch: MicroBatch,
): void {
  for (const [index, generator] of generators.entries())
    generator.setState({ seed: seedOf(seed, microBatch, index), offset: 0 });
}
