// Tests batchNorm, also of a batch that is split over processes.
import { describe, expect, test } from 'vitest';
import {
  type BatchNormSync,
  batchNorm,
  cat,
  instanceNorm,
  memory,
  ones,
  randn,
  scope,
  type Tensor,
  tensor,
  zeros,
} from '../../../src/index.ts';
import { codeOf } from '../../support/code-of.ts';
import { expectClose } from '../../support/kernels-oracle.ts';
import { gradCheck64, leaf64 } from '../../support/leaf64.ts';
import { expectTorch } from '../../support/torch-data.ts';
import { torchLayers } from '../../support/torch-layers.ts';

const doubles = (values: number[]): Tensor => tensor(values, { dtype: 'float64' });

describe('batchNorm', () => {
  test('gives what PyTorch gives, in training and in evaluation, and moves the running statistics alike', () => {
    const [mean, variance] = [doubles([0.5, -0.25]), doubles([1.5, 2])];
    const shapes = [[2, 2, 3], [2], [2]];
    expectTorch(torchLayers.batchNorm, shapes, (x, weight, bias) =>
      batchNorm(x!, mean, variance, { weight: weight!, bias: bias!, training: true, momentum: 0.3 }),
    );
    expectClose(mean.dataSync(), torchLayers.batchNormRunning[0], 1e-6);
    expectClose(variance.dataSync(), torchLayers.batchNormRunning[1], 1e-6);
    expectTorch(torchLayers.batchNormEval, shapes, (x, weight, bias) =>
      batchNorm(x!, mean, variance, { weight: weight!, bias: bias! }),
    );
  });

  test('takes eps 0 only in evaluation, as in PyTorch', () => {
    const x = tensor([1, 2, 4]).reshape([3, 1]);
    const call = (): Tensor => batchNorm(x, null, null, { training: true, eps: 0 });
    expect(call).toThrow('batchNorm: eps in training: expected a number > 0, got 0.');
    expect(codeOf(call)).toBe('ERR_TENSOR_ARGUMENT');
    expect(batchNorm(x, tensor([1]), tensor([4]), { eps: 0 }).toArray()).toEqual([[0], [0.5], [1.5]]);
    // instanceNorm() takes it.
    expect(instanceNorm(tensor([1, 3]).reshape([1, 1, 2]), null, null, { eps: 0 }).toArray()).toEqual([
      [[-1, 1]],
    ]);
  });

  test('has the gradients of finite differences, in both modes, of views too', () => {
    const [mean, variance] = [doubles([0.2, -0.1, 0.3]), doubles([0.5, 1, 2])];
    const factors = leaf64([4, 3, 2, 5], 9).detach();
    for (const training of [true, false]) {
      gradCheck64(
        (x, weight, bias) => {
          const turned = x!.permute([3, 0, 1, 2]);
          const out = batchNorm(turned, mean.clone(), variance.clone(), {
            weight: weight!,
            bias: bias!,
            training,
          });
          return out.square().mul(factors);
        },
        [leaf64([3, 2, 5, 4]), leaf64([3], 2), leaf64([3], 3)],
      );
      gradCheck64(
        (x) =>
          batchNorm(x!, mean, variance, { training })
            .square()
            .mul(factors.at(':', ':', 0, 0)),
        [leaf64([4, 3])],
      );
    }
  });

  test('a batch in two parts that exchange their sums is one batch', () => {
    const x = leaf64([5, 3, 4]);
    const weight = leaf64([3], 2);
    const grad = leaf64([5, 3, 4], 3).detach();
    const [runningMean, runningVar] = [zeros([3], { dtype: 'float64' }), ones([3], { dtype: 'float64' })];
    const want = batchNorm(x, runningMean, runningVar, { weight, training: true });
    want.backward(grad);

    // Computes the sums that the other part of the batch would send, by a pass of its own.
    const sent = (at: Tensor, g: Tensor): { moments: number[]; gradSums: (sync: number[]) => number[] } => {
      let moments: number[] = [];
      const note: BatchNormSync = {
        size: 1,
        gather: (own, all, count) => {
          moments = own.toArray() as number[];
          all.copy_(own);
          return count;
        },
        gradSums: () => {},
      };
      batchNorm(at, null, null, { training: true, sync: note });
      const gradSums = (whole: number[]): number[] => {
        const mean = tensor(whole.slice(0, 3), { dtype: 'float64' }).reshape([3, 1]);
        return [
          ...(g.sum([0, 2]).toArray() as number[]),
          ...(g.mul(at.sub(mean)).sum([0, 2]).toArray() as number[]),
        ];
      };
      return { moments, gradSums };
    };
    const parts = [x.detach().narrow(0, 0, 2).clone(), x.detach().narrow(0, 2, 3).clone()];
    const grads = [grad.narrow(0, 0, 2), grad.narrow(0, 2, 3)];
    const weights = parts.map(() => weight.detach().clone());
    const outs: Tensor[] = [];
    for (const i of [0, 1]) {
      const own = parts[i]!;
      const other = sent(parts[1 - i]!, grads[1 - i]!);
      own.requiresGrad = true;
      weights[i]!.requiresGrad = true;
      let whole: number[] = [];
      const sync: BatchNormSync = {
        size: 3, // the third batch is empty
        gather: (mine, all, count) => {
          const [a, b] = [mine.toArray() as number[], other.moments];
          const [n, m] = [a[6]!, b[6]!];
          whole = [0, 1, 2].map((c) => (a[c]! * n + b[c]! * m) / (n + m));
          all.copy_(doubles([...a, ...b, 0, 0, 0, 0, 0, 0, 0]).reshape([3, 7]));
          return count + m;
        },
        gradSums: (mine) => void mine.add_(doubles(other.gradSums(whole))),
      };
      const [mean, variance] = [zeros([3], { dtype: 'float64' }), ones([3], { dtype: 'float64' })];
      const out = batchNorm(own, mean, variance, { weight: weights[i]!, training: true, sync });
      out.backward(grads[i]!.contiguous());
      outs.push(out);
      expectClose(mean.dataSync(), runningMean.toArray() as number[], 1e-12);
      expectClose(variance.dataSync(), runningVar.toArray() as number[], 1e-12);
    }
    const all = (tensors: Tensor[]): Tensor => cat(tensors, 0);
    expect(all(outs).sub(want).abs().max().item()).toBeLessThan(1e-12);
    expect(
      all(parts.map((p) => p.grad!))
        .sub(x.grad!)
        .abs()
        .max()
        .item(),
    ).toBeLessThan(1e-12);
    const weightGrad = weights[0]!.grad!.add(weights[1]!.grad!);
    expect(weightGrad.sub(weight.grad!).abs().max().item()).toBeLessThan(1e-12);
  });

  test('halves are computed in float32, beside statistics in float32', () => {
    const x = randn([8, 4, 3]);
    const [weight, mean, variance] = [ones([4], { requiresGrad: true }), zeros([4]), ones([4])];
    const half = x.to('float16');
    half.requiresGrad = true;
    const out = batchNorm(half, mean, variance, { weight, training: true });
    expect([out.dtype, mean.dtype]).toEqual(['float16', 'float32']);
    const apart = out.to('float32').sub(batchNorm(x, null, null, { training: true }));
    expect(apart.abs().max().item()).toBeLessThan(5e-3);
    out.square().mean().backward();
    expect([half.grad!.dtype, weight.grad!.dtype]).toEqual(['float16', 'float32']);
  });

  test('refuses what cannot be normalised', () => {
    const x = zeros([1, 3]);
    expect(() => batchNorm(x, null, null, { training: true })).toThrow(
      'batchNorm: expected more than one value per channel to train on, got shape [1, 3].',
    );
    expect(() => batchNorm(x, zeros([2]), ones([3]))).toThrow(
      'batchNorm: expected runningMean of shape [3], one for each channel, got [2].',
    );
    expect(codeOf(() => batchNorm(x, null, null))).toBe('ERR_TENSOR_ARGUMENT');
    expect(codeOf(() => batchNorm(zeros([3]), null, null, { training: true }))).toBe('ERR_TENSOR_SHAPE');
    expect(codeOf(() => batchNorm(x.to('int64'), null, null, { training: true }))).toBe('ERR_TENSOR_DTYPE');
  });

  test('gives back everything that it took', () => {
    const [x, weight, mean, variance] = [randn([4, 3, 2]), ones([3]), zeros([3]), ones([3])];
    weight.requiresGrad = true;
    const { tensors } = memory();
    for (const training of [true, false]) {
      scope(() => void batchNorm(x, mean, variance, { weight, training }));
      scope(() => batchNorm(x, mean, variance, { weight, training }).sum().backward());
      weight.zeroGrad();
      expect(memory().tensors).toBe(tensors);
    }
  });
});
