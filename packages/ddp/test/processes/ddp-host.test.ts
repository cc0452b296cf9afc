// Trains in real processes over the host backend, with @ringwise/tensor as the autograd.
import { values, withRanks } from '@ringwise/testing';
import { expect, it } from 'vitest';
import { type History, type Run, train } from '../fixtures/train.ts';
import { largestDifference } from '../support/ranks.ts';

const fixture = new URL('../fixtures/train.ts', import.meta.url);
const env = { TORCHELASTIC_USE_AGENT_STORE: 'True' }; // the test serves the store

/** Expects the same bits on all ranks after every step, and one process's parameters except for rounding. */
async function expectEqualToOneProcess(size: number, run: Run): Promise<void> {
  const alone = await train(0, run); // in this process: a group of one
  const ranks = values<History>(await withRanks(size, fixture, 'train', { args: [run], env }));
  for (const [step, parameters] of alone.parameters.entries()) {
    for (const rank of ranks) expect(rank.parameters[step]).toEqual(ranks[0]!.parameters[step]);
    expect(largestDifference(ranks[0]!.parameters[step]!, parameters)).toBeLessThan(1e-4);
  }
  const meanLosses = alone.losses.map((_, step) => {
    return ranks.reduce((sum, { losses }) => sum + losses[step]! / size, 0);
  });
  expect(largestDifference(meanLosses, alone.losses)).toBeLessThan(1e-4);
  expect(alone.losses.at(-1)).toBeLessThan(alone.losses[0]!);
}

it('2 ranks with different seeds train as one process on the joined batch, 50 steps', () =>
  expectEqualToOneProcess(2, { steps: 50, batch: 12 }));

it('3 ranks with different seeds train as one process on the joined batch, 50 steps', () =>
  expectEqualToOneProcess(3, { steps: 50, batch: 12 }));

it('accumulates gradients in noSync as one process does', () =>
  expectEqualToOneProcess(2, { steps: 10, batch: 8, accumulate: 3, bucketBytes: 1 }));

it('tells every process which parameters one of them left out', async () => {
  const [first, faulty, third] = await withRanks(3, fixture, 'forgetLayer', { env });
  expect(faulty!.error).toMatchObject({ code: 'ERR_DDP_UNUSED', params: ['4.weight', '4.bias'], ranks: [1] });
  for (const rank of [first, third]) {
    expect(rank!.error).toMatchObject({ code: 'ERR_COLL_ABORTED', peers: [1], secondary: true });
    expect(rank!.error!.message).toContain('2 of 6 parameters got no gradient on rank 1');
  }
});
