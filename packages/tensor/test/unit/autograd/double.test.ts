// Gradients of gradients: grad() with createGraph, and what is made of it. Second gradients are compared with
// differences of first ones; those of elementwise operations and many others also with PyTorch's, by the generator.
import { describe, expect, test } from 'vitest';
import {
  avgPool2d,
  batchNorm,
  cat,
  checkpoint,
  conv2d,
  crossEntropy,
  customFunction,
  dropout,
  enableGrad,
  generator,
  grad,
  gradCheck,
  hessian,
  hvp,
  jacobian,
  jvp,
  layerNorm,
  linear,
  manualSeed,
  maxPool2d,
  memory,
  noGrad,
  randn,
  rmsNorm,
  scaledDotProductAttention,
  scope,
  selfAttention,
  softplus,
  type Tensor,
  tensor,
} from '../../../src/index.ts';
import { Linear, Sequential, Tanh } from '../../../src/nn/index.ts';
import { runCell } from '../../../src/nn/layers/recurrent/stack.ts';
import type { CellKind } from '../../../src/ops/recurrent/rules.ts';
import { SGD } from '../../../src/optim/index.ts';

type TensorFunction = (...inputs: Tensor[]) => Tensor;

/** Runs two sequences of 3 and 2 steps through a recurrent cell; returns its outputs and final states as one tensor. */
const recurrent =
  (kind: CellKind, isReversed: boolean): TensorFunction =>
  (rows, weightIh, weightHh, biasIh, biasHh, ...states) => {
    const cell = {
      ...{ weightIh: weightIh!, weightHh: weightHh!, biasIh: biasIh!, biasHh: biasHh! },
      weightHr: null,
    };
    const { output, states: last } = runCell(kind, cell, rows!, states, [2, 2, 1], isReversed);
    return cat([output, ...last], 0);
  };
const recurrentShapes = (gates: number, states: number): number[][] => {
  const [ins, width] = [2, 3];
  const parameters = [[gates * width, ins], [gates * width, width], [gates * width], [gates * width]];
  return [[5, ins], ...parameters, ...Array.from({ length: states }, () => [2, width])];
};

/** Returns a function that computes all first gradients of the weighted sum of `fn`, as one tensor. */
const gradientsOf =
  (fn: TensorFunction): TensorFunction =>
  (...inputs) =>
    enableGrad(() => {
      const out = fn(...inputs);
      const weights = tensor(
        Float64Array.from({ length: out.count }, (_, i) => Math.cos(i + 1)),
        { dtype: 'float64', shape: out.shape },
      );
      const gradients = grad(out, inputs, { gradOutputs: [weights], createGraph: true, allowUnused: true });
      return gradients
        .filter((gradient) => gradient !== null)
        .map((gradient) => gradient.mul(gradient).sum())
        .reduce((a, b) => a.add(b));
    });

function leaves(...shapes: (readonly number[])[]): Tensor[] {
  manualSeed(3);
  return shapes.map((shape) => {
    const leaf = randn(shape).to('float64');
    leaf.requiresGrad = true;
    return leaf;
  });
}

const cases: Record<string, [TensorFunction, ...(readonly number[])[]]> = {
  'a convolution': [(x, w, b) => conv2d(x!, w!, b!), [2, 2, 5, 4], [3, 2, 3, 2], [3]],
  'a convolution with strides, padding, dilation and groups': [
    (x, w, b) => conv2d(x!, w!, b!, { stride: [2, 1], padding: [1, 2], dilation: [1, 2], groups: 2 }),
    [1, 4, 6, 5],
    [2, 2, 3, 2],
    [2],
  ],
  layerNorm: [(x, weight, bias) => layerNorm(x!, [4], { weight, bias }), [3, 4], [4], [4]],
  rmsNorm: [(x, weight) => rmsNorm(x!, [4], { weight }), [3, 4], [4]],
  'batchNorm in training': [
    (x, weight, bias) => batchNorm(x!, null, null, { weight, bias, training: true }),
    [3, 2, 2],
    [2],
    [2],
  ],
  'batchNorm in evaluation': [
    (x, weight, bias) =>
      batchNorm(x!, tensor([0.5, -1], { dtype: 'float64' }), tensor([2, 0.5], { dtype: 'float64' }), {
        weight,
        bias,
        training: false,
      }),
    [3, 2, 2],
    [2],
    [2],
  ],
  attention: [(q, k, v) => scaledDotProductAttention(q!, k!, v!), [1, 2, 3, 2], [1, 2, 4, 2], [1, 2, 4, 2]],
  'causal attention': [
    (q, k, v) => scaledDotProductAttention(q!, k!, v!, { causal: true }),
    [1, 1, 3, 2],
    [1, 1, 3, 2],
    [1, 1, 3, 2],
  ],
  'attention with a mask and dropout': [
    (q, k, v) =>
      scaledDotProductAttention(q!, k!, v!, {
        mask: tensor([1, 0, 1, 1, 1, 0], { dtype: 'bool', shape: [2, 3] }),
        dropout: 0.3,
        generator: generator(5),
      }),
    [1, 1, 2, 2],
    [1, 1, 3, 2],
    [1, 1, 3, 2],
  ],
  'packed attention': [(qkv) => selfAttention(qkv!, 2, { causal: true }), [2, 3, 12]],
  crossEntropy: [
    (x) =>
      crossEntropy(x!, tensor([2, 0, -100, 1], { dtype: 'int64' }), {
        weight: tensor([1, 2, 0.5], { dtype: 'float64' }),
        labelSmoothing: 0.1,
      }),
    [4, 3],
  ],
  maxPool2d: [(x) => maxPool2d(x!, 2).square(), [1, 2, 4, 4]],
  avgPool2d: [(x) => avgPool2d(x!.square(), 2, { padding: 1 }), [1, 2, 4, 4]],
  'linear with relu': [(x, w, b) => linear(x!, w!, b!, { activation: 'relu' }), [3, 2], [4, 2], [4]],
  'linear with gelu': [(x, w, b) => linear(x!, w!, b!, { activation: 'gelu' }), [3, 2], [4, 2], [4]],
  'linear with geluTanh': [(x, w, b) => linear(x!, w!, b!, { activation: 'geluTanh' }), [2, 2], [3, 2], [3]],
  'a recurrence with relu': [recurrent('relu', false), ...recurrentShapes(1, 1)],
  'a recurrence with tanh, backwards': [recurrent('tanh', true), ...recurrentShapes(1, 1)],
  lstm: [recurrent('lstm', false), ...recurrentShapes(4, 2)],
  'lstm, backwards': [recurrent('lstm', true), ...recurrentShapes(4, 2)],
  gru: [recurrent('gru', false), ...recurrentShapes(3, 1)],
  'gru, backwards': [recurrent('gru', true), ...recurrentShapes(3, 1)],
  dropout: [(x) => dropout(x!.square(), 0.4, { generator: generator(1) }), [3, 4]],
  softmax: [(x) => x!.softmax(0), [3, 4]],
  'products, variances and norms': [(x) => x!.prod(1).add(x!.std(1)).add(x!.norm(1)), [2, 3]],
  'a function of the user': [
    (x) =>
      customFunction<[Tensor]>({
        name: 'cube',
        forward: (context, a) => {
          context.save(a);
          return a.pow(3);
        },
        backward: ({ saved: [a] }, gradient) => gradient.mul(a!.square()).mul(3),
      })(x!),
    [4],
  ],
};

describe('the gradient of a gradient', () => {
  test.each(Object.entries(cases))('of %s', (_, [fn, ...shapes]) => {
    scope(() => gradCheck(gradientsOf(fn), leaves(...shapes), { epsilon: 1e-4, tolerance: 1e-4 }));
  });

  test('of softplus is 0 at the threshold, as in PyTorch', () => {
    const x = tensor([1.9, 2, 2.1], { dtype: 'float64', requiresGrad: true });
    const [slope] = grad(softplus(x, 1, 2).sum(), x, { createGraph: true }) as [Tensor];
    const first = slope.toArray() as number[];
    expect(first[1]).toBeCloseTo(0.8807970779778824, 14);
    const [second] = grad(slope.sum(), x) as [Tensor];
    expect(second.toArray()).toEqual([expect.closeTo(0.11318025926193101, 12), 0, 0]);
  });

  test('of a negative number to the power of 0 is that of the exponent, as in PyTorch', () => {
    const base = tensor([-2], { dtype: 'float64', requiresGrad: true });
    const exponent = tensor([0], { dtype: 'float64', requiresGrad: true });
    const [a, b] = grad(base.pow(exponent).sum(), [base, exponent], { createGraph: true }) as [
      Tensor,
      Tensor,
    ];
    const [second] = grad(a.sum().add(b.sum()), base) as [Tensor];
    expect(second.toArray()).toEqual([-0.5]);
  });

  test('can be taken again and again', () => {
    scope(() => {
      const x = tensor([2], { dtype: 'float64', requiresGrad: true });
      let y = x.pow(4).mul(x.exp());
      const orders = [y];
      for (let i = 0; i < 4; i++) {
        [y] = grad(y.sum(), x, { createGraph: true }) as [Tensor];
        orders.push(y);
      }
      const e2 = Math.exp(2);
      // Leibniz: Σ over j of (n over j) · (x⁴)⁽ʲ⁾ · eˣ at 2, with (x⁴)⁽ʲ⁾ = 16, 32, 48, 48, 24.
      const expected = [16, 16 + 32, 16 + 64 + 48, 16 + 96 + 144 + 48, 16 + 128 + 288 + 192 + 24];
      for (const [i, order] of orders.entries()) expect(order.item()).toBeCloseTo(expected[i]! * e2, 8);
    });
  });
});

describe('createGraph', () => {
  test('trains with a gradient penalty, and leaves no memory', () => {
    const before = memory().bytes;
    scope(() => {
      manualSeed(1);
      const critic = new Sequential(new Linear(2, 8), new Tanh(), new Linear(8, 1));
      const optimizer = new SGD(critic.parameters(), { lr: 0.05 });
      const points = randn([16, 2]);
      const slopes: number[] = [];
      for (let step = 0; step < 60; step++)
        scope(() => {
          const x = points.detach();
          x.requiresGrad = true;
          const [slope] = grad(critic.forward(x).sum(), x, { createGraph: true }) as [Tensor];
          const penalty = slope.norm(1).sub(1).square().mean();
          optimizer.zeroGrad();
          penalty.backward();
          optimizer.step();
          slopes.push(penalty.item());
        });
      expect(slopes.at(-1)!).toBeLessThan(slopes[0]! / 10);
      for (const parameter of critic.parameters()) parameter.dispose();
    });
    expect(memory().bytes).toBe(before);
  });

  test('gives null for unused inputs if they are allowed, and tensors of their own', () => {
    scope(() => {
      const [a, b] = leaves([2], [2]) as [Tensor, Tensor];
      const both = grad(a.add(b).sum(), [a, b], { createGraph: true }) as [Tensor, Tensor];
      expect(both[0]).not.toBe(both[1]);
      expect(grad(a.sum(), [a, b], { createGraph: true, allowUnused: true })[1]).toBeNull();
      expect(() => grad(a.sum(), [a, b], { createGraph: true })).toThrow(/input 1/);
    });
  });

  test('refuses hooks, checkpoints and graphs that were freed', () => {
    scope(() => {
      const [x] = leaves([3]) as [Tensor];
      const hooked = x.square();
      hooked.registerHook(() => undefined);
      expect(() => grad(hooked.sum(), x, { createGraph: true })).toThrow(/must not have hooks/);
      const saved = checkpoint((a: Tensor) => a.square(), x);
      expect(() => grad(saved.sum(), x, { createGraph: true })).toThrow(/'checkpoint' does not have/);
      const loss = x.square().sum();
      loss.backward();
      expect(() => grad(loss, x, { createGraph: true })).toThrow(/freed by an earlier backward/);
      const changed = x.square().sum();
      noGrad(() => x.mul_(2));
      expect(() => grad(changed, x, { createGraph: true })).toThrow(/changed in place/);
    });
  });
});

describe('products with derivatives', () => {
  const fn = (a: Tensor, b: Tensor): Tensor => a.sin().mul(b).add(b.square());

  test('jvp is the Jacobian times the vectors', () => {
    scope(() => {
      const [a, b] = leaves([3], [3]) as [Tensor, Tensor];
      const [u, v] = leaves([3], [3]) as [Tensor, Tensor];
      const { output, product } = jvp(fn as TensorFunction, [a, b], [u, v]);
      const expected = a
        .cos()
        .mul(b)
        .mul(u)
        .add(a.sin().add(b.mul(2)).mul(v));
      expect(product.sub(expected).abs().max().item()).toBeLessThan(1e-12);
      expect(output.sub(fn(a, b)).abs().max().item()).toBe(0);
      expect([output.requiresGrad, product.requiresGrad, a.grad]).toEqual([false, false, null]);
    });
  });

  test('hvp and hessian agree', () => {
    scope(() => {
      const [x, v] = leaves([4], [4]) as [Tensor, Tensor];
      const loss = (a: Tensor): Tensor => a.pow(3).sum().mul(a.sum());
      const { products } = hvp(loss as TensorFunction, [x], [v]);
      const whole = hessian(loss, x);
      expect(whole.shape).toEqual([4, 4]);
      expect(whole.matmul(v.detach()).sub(products[0]!).abs().max().item()).toBeLessThan(1e-9);
      expect(
        hessian((a) => a.sum(), x)
          .abs()
          .max()
          .item(),
      ).toBe(0);
    });
  });

  test('jacobian has the shapes of result and input', () => {
    scope(() => {
      const [x] = leaves([2, 3]) as [Tensor];
      const rows = jacobian((a) => a.sum(1), x);
      expect(rows.shape).toEqual([2, 2, 3]);
      expect(rows.select(0, 0).toArray()).toEqual([
        [1, 1, 1],
        [0, 0, 0],
      ]);
    });
  });

  test('bad vectors and results are refused', () => {
    scope(() => {
      const [x] = leaves([2]) as [Tensor];
      const sine = ((a: Tensor) => a.sin()) as TensorFunction;
      expect(() => jvp(sine, [x], [])).toThrow(/a list of 1 tensors/);
      expect(() => jvp(sine, [x], [tensor([1], { dtype: 'float64' })])).toThrow(/gradient of shape \[2\]/);
      expect(() => hvp(sine, [x], [x])).toThrow(/returns one element, got shape \[2\]/);
      expect(() => hessian((() => 3) as never, x)).toThrow(/the result of the function/);
      expect(() => jacobian('sin' as never, x)).toThrow(/expected a function/);
    });
  });
});
