// Race 7, the state: a process that gets the state dies, and so does a member in the middle of what it sends.
import { expect, it } from 'vitest';
import { checkSteps, long, planOf, run } from '../../../support/jobs.ts';
import { checkLearned, learning } from '../../../support/learning.ts';

it('a process joins while one of those that send the state is killed: the others give it', async () => {
  const plan = planOf(3, {
    ...long,
    ...{
      joins: { 3: 0 },
      ballast: 4 << 20,
      faults: { 1: { step: -2, at: 'sending', do: 'SIGKILL', delayMs: 2 } },
    },
    until: { size: 3, steps: 8, view: 2 },
  });
  const results = await run(4, plan);
  expect(results[1]!.signal).toBe('SIGKILL');
  await checkSteps(results, [0, 2, 3], plan);
});

it('a process that joins dies before it has the state', async () => {
  const plan = planOf(2, {
    ...long,
    ...{ joins: { 2: 0, 3: 1 }, faults: { 2: { step: -1, at: 'loading', do: 'SIGKILL' } } },
    until: { size: 3, steps: 8 },
  });
  const results = await run(4, plan);
  expect(results[2]!.signal).toBe('SIGKILL');
  await checkSteps(results, [0, 1, 3], plan);
});

it('a learner dies: no view ever has it, and the next one joins', async () => {
  const plan = learning(2, {
    ...{ joins: { 2: 0, 3: 0 }, faults: { 2: { step: -1, at: 'loading', do: 'SIGKILL' } } },
    until: { size: 3, steps: 8 },
  });
  const results = await run(4, plan);
  expect(results[2]!.signal).toBe('SIGKILL');
  const ends = await checkSteps(results, [0, 1, 3], plan);
  expect(ends[0]!.sizes).toEqual([2, 3]);
  expect(ends[0]!.log.flatMap(({ lost }) => lost)).toEqual([]);
  checkLearned(ends[2]!.states);
});

it('a member that sends the state dies: the learner gets it from the others', async () => {
  const plan = learning(3, {
    ...{ joins: { 3: 0 }, ballast: 4 << 20, stepMs: 20 },
    faults: { 1: { step: -2, at: 'sending', do: 'SIGKILL', delayMs: 2 } },
    until: { size: 3, steps: 8, view: 1 },
  });
  const results = await run(4, plan);
  expect(results[1]!.signal).toBe('SIGKILL');
  const ends = await checkSteps(results, [0, 2, 3], plan);
  expect(ends[0]!.sizes).toEqual([3, 2, 3]);
  checkLearned(ends[2]!.states);
  expect(ends[2]!.states[0]!.learned!.sources).toBe(2);
});
