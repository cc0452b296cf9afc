// Tests checkpoint, which computes a part of the forward again in backward.
import { describe, expect, test } from 'vitest';
import {
  checkpoint,
  grad,
  manualSeed,
  memory,
  noGrad,
  ones,
  rand,
  relu,
  scope,
  type Tensor,
  tensor,
} from '../../../src/index.ts';
import { Linear, Module } from '../../../src/nn/index.ts';
import { codeOf } from '../../support/code-of.ts';

class Block extends Module {
  readonly a = new Linear(4, 4);
  readonly b = new Linear(4, 4);
  forward(x: Tensor): Tensor {
    return this.b.forward(relu(this.a.forward(x))).add(x);
  }
}

const input = (): Tensor => tensor([[0.5, -1, 2, 0.25]], { requiresGrad: true });

/** Runs a model of two blocks that share a layer. Returns the gradients and the order in which they are ready. */
function run(isCheckpointed: boolean): { grads: unknown[]; ready: string[]; x: unknown } {
  manualSeed(3);
  const [first, second] = [new Block(), new Block()];
  const ready: string[] = [];
  for (const [name, p] of [...first.namedParameters(), ...second.namedParameters()])
    p.onGradReady(() => ready.push(name));
  const call = (block: Block, x: Tensor): Tensor =>
    isCheckpointed ? checkpoint((y) => block.forward(y), x) : block.forward(x);
  const x = input();
  scope(() => {
    const h = call(second, call(first, x.mul(2)));
    call(first, h).sum().backward();
  });
  const grads = [...first.parameters(), ...second.parameters()].map((p) => p.grad!.toArray());
  return { grads, ready, x: x.grad!.toArray() };
}

describe('checkpoint', () => {
  test('gives the same gradients, in the same order of readiness, as no checkpoint', () => {
    const [plain, again] = [run(false), run(true)];
    expect(again).toEqual(plain);
    expect(again.ready).toHaveLength(8);
  });

  test('holds inputs only until backward', () => {
    const block = new Block();
    const x = input();
    const before = memory().tensors;
    const out = checkpoint((y) => block.forward(y), x);
    expect(memory().tensors).toBe(before + 1);
    out.sum().backward();
    out.dispose();
    expect(out.isDisposed).toBe(true);
    const step = (): void => {
      scope(() =>
        checkpoint((y) => block.forward(y), x)
          .sum()
          .backward(),
      );
      block.zeroGrad();
      x.zeroGrad();
    };
    step();
    const steady = memory();
    for (let i = 0; i < 10; i++) step();
    expect(memory()).toEqual(steady);
  });

  test('draws the same random numbers again, and leaves those of later draws as they were', () => {
    manualSeed(1);
    const masks: unknown[] = [];
    const x = ones([8], { requiresGrad: true });
    const drop = (y: Tensor): Tensor => {
      const mask = rand([8]).lt(0.5).to('float32');
      masks.push(mask.toArray());
      return y.mul(mask);
    };
    const out = checkpoint(drop, x);
    const next = rand([1]).item();
    out.sum().backward();
    expect(masks[1]).toEqual(masks[0]);
    expect(x.grad!.toArray()).toEqual(masks[0]);
    const after = rand([1]).item();
    manualSeed(1);
    drop(x);
    expect([rand([1]).item(), rand([1]).item()]).toEqual([next, after]);
  });

  test('nests, runs twice over a retained graph, and works with grad()', () => {
    const x = input();
    const inner = (y: Tensor): Tensor => checkpoint((z) => z.square().mul(z), y);
    const loss = checkpoint((y) => inner(y).sin(), x).sum();
    const plain = input();
    plain.square().mul(plain).sin().sum().backward();
    expect(grad(loss, x, { retainGraph: true })[0]!.toArray()).toEqual(plain.grad!.toArray());
    loss.backward(null, { retainGraph: true });
    expect(x.grad!.toArray()).toEqual(plain.grad!.toArray());
    loss.backward();
    expect(() => loss.backward()).toThrow('the graph was freed');
  });

  test('takes results of operations from outside, and does nothing without gradients', () => {
    const [x, w] = [input(), input()];
    const h = w.mul(3);
    checkpoint((y) => y.mul(h), x)
      .sum()
      .backward();
    expect(w.grad!.toArray()).toEqual([[1.5, -3, 6, 0.75]]);
    expect(noGrad(() => checkpoint((y) => y.mul(2), x)).requiresGrad).toBe(false);
    expect(checkpoint((y) => y.mul(2), ones([1])).requiresGrad).toBe(false);
    expect(checkpoint((y) => y, x).sum().requiresGrad).toBe(true);
  });

  test('refuses a function whose second run gives another shape', () => {
    const x = input();
    let calls = 0;
    const loss = checkpoint((y) => (calls++ === 0 ? y.mul(2) : y.sum()), x).sum();
    expect(codeOf(() => loss.backward())).toBe('ERR_TENSOR_AUTOGRAD');
  });
});
