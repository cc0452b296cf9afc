// Processes that get the state while the others train on, and join when they have taken all their steps.
import { type RankResult, values, withDeadlines } from '@ringwise/testing';
import { expect, it } from 'vitest';
import type { Fault, Plan, Trained } from '../fixtures/train.ts';
import { checkSteps, long, planOf, run } from '../support/jobs.ts';
import { checkLearned, learning } from '../support/learning.ts';

/** Checks that members have trained in one view, which no other process joined, and have ended well. */
function checkUndisturbed(results: readonly RankResult[]): void {
  for (const { sizes, finalSteps } of values<Trained>(results)) {
    expect(sizes).toEqual([results.length]);
    expect(finalSteps).toBeGreaterThan(0);
  }
}

it('a learner has the bits of the others when it joins', async () => {
  const plan = learning(2, { joins: { 2: 0 }, until: { size: 3, steps: 8 } });
  const ends = await checkSteps(await run(3, plan), [0, 1, 2], plan);
  expect(ends[0]!.sizes).toEqual([2, 3]);
  checkLearned(ends[2]!.states);
  expect(ends[2]!.states[0]!.learned!.sources).toBe(2);
});

it('running statistics, which no optimizer changes, are sent when it joins', async () => {
  const plan = learning(2, {
    batchNorm: true,
    joins: { 2: 0 },
    until: { size: 3, steps: 8 },
    ballast: 4 << 20,
  });
  const ends = values<Trained>(await run(3, plan));
  for (const { state } of ends) expect(state).toEqual(ends[0]!.state);
  // Mean and variance of 8 features, and the number of batches. State that does not change is not sent again.
  checkLearned(ends[2]!.states, 2 * 8 * 4 + 8);
  expect(ends[2]!.states[0]!.bytes).toBeGreaterThan(16 << 20);
});

it('two learners at once', async () => {
  const plan = learning(2, { joins: { 2: 0, 3: 0 }, until: { size: 4, steps: 8 }, ballast: 1 << 20 });
  const ends = await checkSteps(await run(4, plan), [0, 1, 2, 3], plan);
  for (const end of [ends[2]!, ends[3]!]) checkLearned(end.states);
});

it('a slow store delays the learner and not the steps', async () => {
  const plan = learning(2, { storeMs: 100, joins: { 2: 0 }, until: { size: 3, steps: 8 } });
  const ends = await checkSteps(await run(3, plan), [0, 1, 2], plan);
  checkLearned(ends[2]!.states);
});

it('a learner that takes steps more slowly than the others is not admitted at its deadline', async () => {
  await withDeadlines([4_000, 20_000], async (joinTimeoutMs) => {
    const rest = { slowMs: 1_000, joins: { 2: 0 }, untilRefused: true };
    const results = await run(3, learning(2, { ...rest, options: { learn: true, joinTimeoutMs } }));
    expect(results[2]!.error).toMatchObject({
      code: 'ERR_ELASTIC_BEHIND',
      message: expect.stringContaining(
        `has not caught up with the training of the others within ${joinTimeoutMs} ms`,
      ),
    });
    checkUndisturbed(results.slice(0, 2));
  });
});

it('a process that is too slow to learn joins nevertheless, and the others stop for it', async () => {
  const plan = planOf(2, {
    ...{ ...long, hidden: 120_000, stepMs: 0, slowMs: 1_000 },
    ...{ joins: { 2: 0 }, until: { size: 3, steps: 1 } },
  });
  const results = await run(3, plan);
  const ends = values<Trained>(results);
  // 1.2 million numbers: toEqual() would take ten seconds for each.
  const [first, ...others] = ends.map(({ state }) => Buffer.from(state.buffer));
  for (const other of others) expect(other.equals(first!)).toBe(true);
  expect(ends[2]!.sizes).toEqual([3]);
  expect(ends[2]!.states[0]!.learned).toBeNull();
  // The members dropped what waited for it, and said how much that was.
  expect(results[2]!.stderr).toMatch(
    /RINGWISE_JOIN_PAUSE.*the others train faster .* MB of gradients waited for it on one member/,
  );
});

it('a join that is cancelled is not noticed by the others', async () => {
  const faults: Record<number, Fault> = { 2: { step: -1, at: 'learning', do: 'close' } };
  const plan = learning(2, { faults, joins: { 2: 0 }, untilRefused: true });
  const results = await run(3, plan);
  expect(results[2]!.error).toMatchObject({ code: 'ERR_ELASTIC_LEFT' });
  checkUndisturbed(results.slice(0, 2));
});

const oddPrograms: readonly [what: string, odd: Partial<Plan>, learns: boolean, difference: string][] = [
  ['model', { hidden: 9 }, true, 'its.model.0.weight is "float32 [9, 6]" here and "float32 [8, 6]" there'],
  ['model', { hidden: 9 }, false, 'its.model.0.weight is "float32 [9, 6]" here and "float32 [8, 6]" there'],
  ['loader', { globalBatch: 8 }, false, 'its.loader is '],
  ['hook', { hook: 'int8' }, false, 'its.hook is '],
  ['scaler', { scaled: true }, false, 'its.scaler is true here and false there'],
];
it.each(oddPrograms)(
  'a process whose %s differs is refused before the others notice it (%j, learns: %j)',
  async (_, odd, learns, difference) => {
    const rest = { joins: { 2: 0 }, untilRefused: true, faults: {} };
    const plan = learns ? learning(2, rest) : planOf(2, { ...long, ...rest });
    const results = await run(3, { ...plan, odd: { 2: odd } });
    expect(results[2]!.error).toMatchObject({
      code: 'ERR_ELASTIC_STATE',
      message: expect.stringContaining(
        `does not have the same training as the members of the job: ${difference}`,
      ),
    });
    checkUndisturbed(results.slice(0, 2));
  },
);
