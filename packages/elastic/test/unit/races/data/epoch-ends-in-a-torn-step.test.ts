// Race 15: the last step of an epoch runs again on fewer ranks, or on more ranks than it has micro-batches. The cursor
// moves behind it once, and no sample is left out or dealt twice.
import { expect, test } from 'vitest';
import { firstCursor, Ledger, ownedBy } from '../../../../src/ledger/ledger.ts';

const length = 23;
const ledger = new Ledger(length, { globalBatch: 8, microBatch: 4, seed: 2 });

/** Returns the positions of a step by rank. */
const dealt = (plan: ReturnType<typeof ledger.stepAt>, size: number) =>
  Array.from({ length: size }, (_, rank) =>
    ownedBy(plan, rank, size).flatMap(({ start, end }) =>
      Array.from({ length: end - start }, (__, i) => start + i),
    ),
  );

test('the step has the same samples on any number of ranks, and ends the epoch on all of them', () => {
  let cursor = firstCursor;
  while (cursor.position < 16) cursor = ledger.after(ledger.stepAt(cursor, 5));
  for (const size of [5, 4, 3, 2, 1, 9]) {
    const plan = ledger.stepAt(cursor, size);
    const all = dealt(plan, size);
    expect(all.flat()).toEqual([16, 17, 18, 19, 20, 21, 22]);
    expect(all.filter((own) => own.length === 0)).toHaveLength(Math.max(0, size - 2));
    // A torn step has not moved the cursor: this is the only way on, and it leads to the next epoch.
    expect(ledger.after(plan)).toEqual({ epoch: 1, step: 0, position: 0 });
  }
});

test('a job whose ranks are lost in the last steps uses each sample of an epoch once', () => {
  for (const lostAt of [0, 1, 2, 3, 4, 5]) {
    const used = [new Uint8Array(length), new Uint8Array(length)];
    let size = 4;
    let tries = 0;
    for (let cursor = firstCursor; cursor.epoch < 2; tries++) {
      const plan = ledger.stepAt(cursor, size);
      if (tries === lostAt || tries === lostAt + 1) {
        size--; // the step is torn, and nothing of it counts
        continue;
      }
      for (const own of dealt(plan, size)) for (const position of own) used[plan.epoch]![position]!++;
      cursor = ledger.after(plan);
    }
    for (const counts of used) expect([...counts]).toEqual(Array(length).fill(1));
  }
});
