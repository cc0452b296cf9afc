// The parts of what a learner gets: shares, gradients, values of the optimizer, and which members it asks.
import { gradParamsSymbol } from '@ringwise/ddp';
import { scope, type Tensor } from '@ringwise/tensor';
import { Adam, SGD } from '@ringwise/tensor/optim';
import { describe, expect, it } from 'vitest';
import { candidates } from '../../../src/learners/candidates.ts';
import { copiedGradients, paramsBySource, setGradients } from '../../../src/learners/gradients.ts';
import { optimizerValues, setOptimizerValues } from '../../../src/learners/optimizer-values.ts';
import type { Member, View } from '../../../src/membership/protocol/view.ts';
import { sharesOf } from '../../../src/transfer/shares.ts';
import { flat, lossOf, makeNet } from '../../support/net.ts';

const allocate = (bytes: number) => new Uint8Array(bytes);
const paramsOf = (net: ReturnType<typeof makeNet>) => [...net[gradParamsSymbol]()];

/** Runs a backward of a network on other samples in each step. */
function backward(net: ReturnType<typeof makeNet>, step: number): void {
  scope(() => lossOf((x: Tensor) => net.forward(x), 8 * step, 8).backward());
}

describe('shares', () => {
  it('have all items once, in order, and about as many bytes each', () => {
    const sizes = [7, 0, 100, 3, 3, 3, 50, 1, 64, 64];
    for (const count of [1, 2, 3, 4, 12]) {
      const shares = sharesOf(sizes, count);
      expect(shares).toHaveLength(count);
      expect(shares.flat()).toEqual([...sizes.keys()]);
      const bytes = shares.map((share) => share.reduce((sum, index) => sum + sizes[index]!, 0));
      expect(Math.max(...bytes)).toBeLessThanOrEqual(295 / count + 2 * 100);
    }
  });

  it('of nothing are empty', () => expect(sharesOf([0, 0], 2)).toEqual([[0, 1], []]));
});

describe('gradients', () => {
  it('make another process take the same steps, from any number of members', () => {
    for (const count of [1, 2, 3]) {
      const [member, learner] = [makeNet(), makeNet()];
      const optimizers = [member, learner].map((net) => new Adam(net.parameters(), { lr: 0.01 }));
      for (let step = 0; step < 4; step++) {
        member.zeroGrad();
        backward(member, step);
        // A parameter that was not used in this step.
        if (step === 2) member.parameters()[2]!.unbindGrad();
        for (const [share, params] of paramsBySource(paramsOf(member), count).entries()) {
          setGradients(paramsBySource(paramsOf(learner), count)[share]!, copiedGradients(params, allocate));
        }
        for (const optimizer of optimizers) optimizer.step();
        expect(flat(learner)).toEqual(flat(member));
      }
      expect(optimizerValues(optimizers[1]!)).toBe(optimizerValues(optimizers[0]!));
    }
  });
});

describe('values of an optimizer', () => {
  it('are taken over, and arrays stay as they are', () => {
    const [a, b] = [makeNet(), makeNet()];
    const [first, second] = [a, b].map((net) => new SGD(net.parameters(), { lr: 0.1, momentum: 0.9 }));
    for (const [net, optimizer] of [
      [a, first!],
      [b, second!],
    ] as const) {
      backward(net, 0);
      optimizer.step();
    }
    const before = Array.from(Object.values(second!.stateDict().tensors), (each) => each.dataSync().slice());
    first!.lr = 0.03125;
    first!.groups[0]!.weightDecay = 0.5;
    setOptimizerValues(second!, optimizerValues(first!));
    expect(second!.lr).toBe(0.03125);
    expect(second!.groups[0]!.weightDecay).toBe(0.5);
    expect(Array.from(Object.values(second!.stateDict().tensors), (each) => each.dataSync())).toEqual(before);
    expect(before.length).toBeGreaterThan(0);
  });
});

describe('a learner asks', () => {
  const member = (slot: number, host: string): Member => ({
    id: `${slot}.0`,
    slot,
    host,
    process: null,
    standby: null,
  });
  const view = (...members: Member[]): View => ({
    ...{ number: 3, members, joined: [], lost: [], left: [], finalSteps: 9, decision: 'redo' },
    ...{ wishes: 4, unread: [], failure: null, ended: null, isOver: false, epoch: 0, unsettled: [] },
  });
  const self = { id: '9.0', slot: 9, host: 'b', process: null, standby: null };
  const idsOf = (members: readonly Member[]) => members.map(({ id }) => id);

  it('members on its host, or others if there are none, and at most four', () => {
    const two = view(member(0, 'a'), member(1, 'b'), member(2, 'b'));
    expect(idsOf(candidates(two, self, new Set()))).toEqual(['1.0', '2.0']);
    const far = view(...[0, 1, 2, 3, 4, 5].map((slot) => member(slot, 'a')));
    expect(idsOf(candidates(far, self, new Set()))).toEqual(['0.0', '1.0', '2.0', '3.0']);
  });

  it('none that has ended, and none whose place it takes', () => {
    const all = view(member(0, 'b'), member(1, 'b'), member(9, 'b'));
    expect(idsOf(candidates(all, self, new Set(['0.0'])))).toEqual(['1.0']);
  });
});
