// Which ranks are to blame for a late collective, for what ranks answer.
import { expect, it } from 'vitest';
import { Diagnosis } from '../../../../src/backends/tcp/diagnosis.ts';

/** `answers` has what each rank waits for; a rank without an answer is silent. Rank 0 asks. */
function blamed(suspects: readonly number[], answers: Readonly<Record<number, readonly number[]>>) {
  return new Promise<readonly number[]>((resolve) => {
    const ask = (rank: number) => {
      const waitsFor = answers[rank];
      if (waitsFor !== undefined) queueMicrotask(() => diagnosis.heard(rank, waitsFor));
    };
    const diagnosis = new Diagnosis({ rank: 0, ask }, suspects, resolve);
  });
}

it('a rank whose answer has come is not taken for silent because this thread was busy', async () => {
  await new Promise((resolve) => setImmediate(resolve)); // timers come next, and only then what has come
  const blamedRanks = await new Promise<readonly number[]>((resolve) => {
    const ask = (rank: number) => {
      if (rank === 2) setImmediate(() => diagnosis.heard(2, []));
      else setImmediate(() => diagnosis.heard(1, [2]));
    };
    const diagnosis = new Diagnosis({ rank: 0, ask }, [1], resolve);
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 300); // longer than it waits for answers
  });
  expect(blamedRanks).toEqual([2]);
});

it.each<[string, readonly number[], Readonly<Record<number, readonly number[]>>, readonly number[]]>([
  ['a rank that waits for nothing has not called it', [1], { 1: [] }, [1]],
  ['a rank that does not answer', [1, 2], { 1: [] }, [1, 2]],
  ['a rank that waits for another is not to blame', [1, 2], { 1: [2], 2: [] }, [2]],
  ['also over several ranks, and ranks that are not suspected', [1], { 1: [2], 2: [3], 3: [] }, [3]],
  ['a rank that waits for this one only', [1], { 1: [0] }, [1]],
  ['ranks that wait for each other', [1, 2], { 1: [2], 2: [1] }, [1, 2]],
  ['without suspects there is no rank to blame', [], {}, []],
])('%s', async (_, suspects, answers, expected) => {
  expect(await blamed(suspects, answers)).toEqual(expected);
});
