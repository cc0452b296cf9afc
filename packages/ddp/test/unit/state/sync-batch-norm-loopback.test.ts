// Tests batch norm over up to 64 ranks in one thread. Batch norm blocks, so the ranks share one
// stack: a rank that must wait for the others in forward or backward runs the next rank inside its own call.
// Gradients use loopback as always.
import { asBuffer, type BufferLike, loopbackGroups } from '@ringwise/collectives';
import { scope, type Tensor } from '@ringwise/tensor';
import { BatchNorm2d } from '@ringwise/tensor/nn';
import { SGD } from '@ringwise/tensor/optim';
import { expect, it } from 'vitest';
import { assertInSync, ddp, exchangeOver } from '../../../src/index.ts';
import { cnnAlone, cnnLoss, makeCnn, stateOf, steps } from '../../fixtures/cnn.ts';
import { largestDifference, onRanks, reasons } from '../../support/ranks.ts';

/** Ranks on one stack, which meet once in every run. */
class Stack {
  #parts: readonly (() => void)[] = [];
  #told: Float64Array[] = [];

  run(parts: readonly (() => void)[]): void {
    this.#parts = parts;
    this.#told = [];
    parts[0]!();
    expect(this.#told.length).toBe(parts.length);
  }

  /** Adds the values `own` of the next rank. Returns those of all ranks. */
  meet(own: Float64Array): readonly Float64Array[] {
    this.#told.push(own);
    this.#parts[this.#told.length]?.();
    return this.#told;
  }
}

const floatsOf = (own: unknown) => asBuffer(own as BufferLike).host as Float32Array | Float64Array;

/** Returns the blocking calls that the exchange makes, for ranks on one stack. */
const blocking = (stack: Stack, size: number) => ({
  size,
  allGatherSync: (own: unknown, all: unknown) => {
    const told = stack.meet(Float64Array.from(floatsOf(own)));
    for (const [rank, each] of told.entries()) floatsOf(all).set(each, rank * each.length);
  },
  allReduceSync: (own: unknown) => {
    const floats = floatsOf(own);
    const told = stack.meet(Float64Array.from(floats));
    for (let i = 0; i < floats.length; i++) floats[i] = told.reduce((sum, each) => sum + each[i]!, 0);
  },
});

async function train(counts: readonly number[]): Promise<Float32Array[]> {
  const stack = new Stack();
  const groups = loopbackGroups(counts.length);
  const nets = groups.map(({ rank }) => makeCnn(rank));
  for (const net of nets) {
    for (const layer of net.modules()) {
      if (layer instanceof BatchNorm2d) {
        const onDevice = groups[0]!; // not used: the layers are on the CPU
        layer.sync = exchangeOver(blocking(stack, counts.length), onDevice);
      }
    }
  }
  const models = await Promise.all(groups.map((group, rank) => ddp(nets[rank]!, { group, bucketBytes: 64 })));
  const optimizers = nets.map((net) => new SGD(net.parameters(), { lr: 0.05 }));
  const before = counts.map((_, rank) => counts.slice(0, rank).reduce((sum, count) => sum + count, 0));
  for (let step = 0; step < steps; step++) {
    for (const optimizer of optimizers) optimizer.zeroGrad();
    scope(() => {
      const losses: Tensor[] = [];
      const forward = (rank: number) => () => {
        losses[rank] = cnnLoss(models[rank]!.forward, 20 * step + before[rank]!, counts[rank]!);
      };
      stack.run(models.map((_, rank) => forward(rank)));
      stack.run(models.map((model, rank) => () => model.backward(losses[rank]!, { weight: counts[rank]! })));
    });
    await Promise.all(models.map((model) => model.finish()));
    for (const optimizer of optimizers) optimizer.step();
  }
  await Promise.all(groups.map((group, rank) => assertInSync(nets[rank]!, group)));
  await Promise.all(groups.map((group) => group.close()));
  return nets.map(stateOf);
}

for (const size of [2, 8, 64])
  for (const [name, countOf] of [
    ['even', () => 2],
    ['uneven', (rank: number) => 1 + (rank % 3)],
  ] as const)
    it(`${size} ranks with ${name} batches train as one process on the joined batch`, async () => {
      const counts = Array.from({ length: size }, (_, rank) => countOf(rank));
      const states = await train(counts);
      for (const state of states) expect(state).toEqual(states[0]);
      const expected = cnnAlone(counts.reduce((a, b) => a + b, 0));
      expect(largestDifference(states[0]!, expected)).toBeLessThan(1e-5);
    });

it('cannot be used inside join, which refuses it before the loop begins', async () => {
  const outcomes = await onRanks(2, async (group) => {
    const net = makeCnn(group.rank);
    const model = await ddp(net, { group });
    for (const layer of net.modules()) {
      if (layer instanceof BatchNorm2d) layer.sync = exchangeOver(blocking(new Stack(), 2), group);
    }
    await model.join(() => expect.fail('the loop began'));
  });
  for (const [rank, error] of reasons(outcomes).entries()) {
    expect(error).toMatchObject({ code: 'ERR_DDP_INVALID', ranks: [rank] });
    expect(error.message).toContain('join: the model has batch norms over all ranks');
  }
});
