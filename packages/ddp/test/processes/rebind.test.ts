// A model trains on after a rank was killed in the middle of a backward, with what it was wrapped with at first.

import { scope } from '@ringwise/tensor';
import { SGD } from '@ringwise/tensor/optim';
import { startRanks, values } from '@ringwise/testing';
import { expect, it } from 'vitest';
import { cnnLoss, makeCnn, stateOf } from '../fixtures/cnn.ts';
import { counts, lostAt, steps } from '../fixtures/rebind.ts';
import { largestDifference } from '../support/ranks.ts';

const fixture = new URL('../fixtures/rebind.ts', import.meta.url);

/** Trains in one process with the samples of all ranks that take part in a step. */
function alone(lost: number): Float32Array {
  const net = makeCnn(0);
  const optimizer = new SGD(net.parameters(), { lr: 0.05 });
  for (let step = 0; step < steps; step++) {
    const count = counts.reduce((sum, n, rank) => (step >= lostAt && rank === lost ? sum : sum + n), 0);
    optimizer.zeroGrad();
    scope(() => cnnLoss((x) => net.forward(x), 20 * step, count).backward());
    optimizer.step();
  }
  return stateOf(net);
}

it('goes on without a rank that was killed', async () => {
  for (const lost of [0, 1, 2]) {
    const ranks = await startRanks(3, fixture, 'trainWithLoss', { args: [lost] });
    const results = await ranks.results;
    expect(results[lost]!.signal).toBe('SIGKILL');
    const states = values<Float32Array>(results.filter(({ rank }) => rank !== lost));
    expect(states[1]).toEqual(states[0]);
    expect(largestDifference(states[0]!, alone(lost))).toBeLessThan(1e-5);
  }
});
