// Tests layerNorm, addLayerNorm and rmsNorm.
import { describe, expect, test } from 'vitest';
import {
  addLayerNorm,
  generator,
  layerNorm,
  memory,
  ones,
  randn,
  rmsNorm,
  scope,
  type Tensor,
  tensor,
  zeros,
} from '../../../src/index.ts';
import { codeOf } from '../../support/code-of.ts';
import { gradCheck64, leaf64 } from '../../support/leaf64.ts';

describe('layerNorm', () => {
  test('gives rows mean 0 and variance 1, then scales and shifts', () => {
    const x = tensor([
      [1, 2, 3, 6],
      [-1, 0, 0, 1],
    ]);
    const out = layerNorm(x, [4], { weight: tensor([1, 2, 1, 1]), bias: tensor([0, 0, 10, 0]) }).toArray();
    const [s, t] = [Math.sqrt(3.5 + 1e-5), Math.sqrt(0.5 + 1e-5)];
    const want = [
      [-2 / s, -2 / s, 10, 3 / s],
      [-1 / t, 0, 10, 1 / t],
    ];
    for (const [r, row] of (out as number[][]).entries())
      for (const [c, value] of row.entries()) expect(value).toBeCloseTo(want[r]![c]!, 5);
  });

  test.each([[[5]], [[3, 5]], [[2, 3, 5]]])('gradients over the last dimensions %j', (shape) => {
    gradCheck64(
      (x, weight, bias) => layerNorm(x!, shape, { weight, bias }).mul(x!),
      [leaf64([2, 3, 5]), leaf64(shape, 2), leaf64(shape, 3)],
    );
    gradCheck64((x) => layerNorm(x!, shape).square(), [leaf64([2, 3, 5])]);
    gradCheck64((x, bias) => layerNorm(x!, shape, { bias }).square(), [leaf64([2, 3, 5]), leaf64(shape, 2)]);
  });

  test('gradients through a transposed input and weight', () => {
    gradCheck64(
      (x, weight) => layerNorm(x!.transpose(0, 1), [3], { weight: weight!.at([0, 6, 2]) }).square(),
      [leaf64([3, 4]), leaf64([6], 2)],
    );
  });

  test.each(['float16', 'bfloat16'] as const)(
    '%s computes in float32, with parameters of either type',
    (dtype) => {
      const x = randn([3, 64], { generator: generator(3) });
      const want = layerNorm(x.to(dtype).to('float32'), [64]).dataSync();
      for (const weight of [ones([64]), ones([64], { dtype })]) {
        const out = layerNorm(x.to(dtype), [64], { weight });
        expect(out.dtype).toBe(dtype);
        for (const [i, value] of (out.to('float32').dataSync() as Float32Array).entries())
          expect(Math.abs(value - (want[i] as number))).toBeLessThan(dtype === 'float16' ? 2e-3 : 2e-2);
      }
    },
  );

  test('refuses shapes, dtypes and an eps that do not fit', () => {
    const x = zeros([2, 3]);
    expect(() => layerNorm(x, [2])).toThrow(
      'layerNorm: expected an input whose last dimensions are the normalised shape [2]',
    );
    expect(codeOf(() => layerNorm(x, []))).toBe('ERR_TENSOR_SHAPE');
    expect(layerNorm(zeros([2, 0]), [0]).shape).toEqual([2, 0]);
    expect(codeOf(() => layerNorm(x, [3], { weight: ones([2]) }))).toBe('ERR_TENSOR_SHAPE');
    expect(codeOf(() => layerNorm(x, [3], { bias: ones([3], { dtype: 'float64' }) }))).toBe(
      'ERR_TENSOR_DTYPE',
    );
    expect(codeOf(() => layerNorm(tensor([[1]], { dtype: 'int32' }), [1]))).toBe('ERR_TENSOR_DTYPE');
    expect(codeOf(() => layerNorm(x, [3], { eps: -1 }))).toBe('ERR_TENSOR_ARGUMENT');
    expect(layerNorm(zeros([0, 3]), [3]).shape).toEqual([0, 3]);
  });
});

describe('addLayerNorm', () => {
  test('is an addition and its normalisation, with the gradients of both', () => {
    const fused = (x: Tensor, y: Tensor, weight: Tensor, bias: Tensor): Tensor => {
      const [sum, normed] = addLayerNorm(x, y, [4], { weight, bias });
      return normed.square().add(sum.mul(3));
    };
    const inputs = [leaf64([3, 4]), leaf64([3, 4], 2), leaf64([4], 3), leaf64([4], 4)] as const;
    gradCheck64((x, y, w, b) => fused(x!, y!, w!, b!), inputs);
    const [sum, normed] = addLayerNorm(inputs[0], inputs[1], [4]);
    const plain = inputs[0].add(inputs[1]);
    expect(sum.toArray()).toEqual(plain.toArray());
    expect(normed.toArray()).toEqual(layerNorm(plain, [4]).toArray());
    gradCheck64((x) => addLayerNorm(x!, x!, [4])[1].square(), [leaf64([3, 4])]);
    const half = addLayerNorm(zeros([2, 4], { dtype: 'bfloat16' }), ones([2, 4], { dtype: 'bfloat16' }), [4]);
    expect(half.map((part) => part.dtype)).toEqual(['bfloat16', 'bfloat16']);
    expect(half[0].to('float32').toArray()).toEqual(ones([2, 4]).toArray());
    expect(codeOf(() => addLayerNorm(zeros([2, 4]), zeros([1, 4]), [4]))).toBe('ERR_TENSOR_SHAPE');
  });
});

describe('rmsNorm', () => {
  test('divides by the root of the mean square', () => {
    const out = rmsNorm(tensor([3, 4]), [2], { weight: tensor([1, 2]), eps: 0 }).dataSync();
    expect(out[0]).toBeCloseTo(3 / Math.sqrt(12.5), 6);
    expect(out[1]).toBeCloseTo(8 / Math.sqrt(12.5), 6);
  });

  test('gradients', () => {
    gradCheck64(
      (x, weight) => rmsNorm(x!, [3, 5], { weight }).mul(x!),
      [leaf64([2, 3, 5]), leaf64([3, 5], 2)],
    );
    gradCheck64((x) => rmsNorm(x!, [5]).square(), [leaf64([2, 5])]);
  });
});

test('normalisation leaves nothing behind when a graph is dropped or run', () => {
  const x = randn([4, 8], { generator: generator(1), requiresGrad: true });
  const weight = ones([8], { requiresGrad: true });
  const run = (withBackward: boolean): void =>
    scope(() => {
      const [sum, normed] = addLayerNorm(x.at([0, 4]), x, [8], { weight });
      const loss = rmsNorm(normed.add(sum), [8]).sum();
      if (withBackward) loss.backward();
    });
  run(true);
  const before = memory().tensors;
  for (const withBackward of [true, false, true]) run(withBackward);
  expect(memory().tensors).toBe(before);
});
