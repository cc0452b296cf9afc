// Tests dropout.
import { describe, expect, test } from 'vitest';
import {
  alphaDropout,
  dropout,
  dropout2d,
  dropout3d,
  featureAlphaDropout,
  generator,
  manualSeed,
  ones,
  randn,
  tensor,
} from '../../../src/index.ts';
import { codeOf } from '../../support/code-of.ts';
import { gradCheck64, leaf64 } from '../../support/leaf64.ts';

describe('dropout', () => {
  test('drops about p of the elements and scales the others up', () => {
    const out = dropout(ones([100_000]), 0.3, { generator: generator(5) }).dataSync() as Float32Array;
    const kept = out.filter((x) => x !== 0);
    expect(kept.length / 100_000).toBeCloseTo(0.7, 2);
    expect(new Set(kept).size).toBe(1);
    expect(kept[0]).toBeCloseTo(1 / 0.7, 6);
  });

  test('backward drops the same elements without a stored mask, also after other draws', () => {
    const x = randn([7, 9], { generator: generator(1), requiresGrad: true });
    const out = dropout(x, 0.5, { generator: generator(2) });
    const values = [...(out.dataSync() as Float32Array)];
    manualSeed(9);
    out.sum().backward();
    const grads = x.grad!.dataSync();
    for (const [i, value] of values.entries()) expect(grads[i]).toBe(value === 0 ? 0 : 2);
  });

  test('the other forms drop everything of integers and bool with p = 1, and refuse other shares of them', () => {
    for (const dtype of ['int64', 'bool'] as const) {
      const x = ones([1, 1, 2, 1], { dtype });
      for (const drop of [dropout2d, dropout3d, alphaDropout, featureAlphaDropout]) {
        const all = drop(x, 1);
        expect([all.dtype, all.to('float32').toArray()]).toEqual([dtype, [[[[0], [0]]]]]);
        expect(() => drop(x, 0.5)).toThrow(`${drop.name}: expected a floating dtype, got ${dtype}.`);
      }
    }
  });

  test('repeats with a seed, and moves the stream on', () => {
    const draw = (): unknown => dropout(ones([50])).toArray();
    manualSeed(4);
    const [first, second] = [draw(), draw()];
    manualSeed(4);
    expect([draw(), draw()]).toEqual([first, second]);
    expect(first).not.toEqual(second);
  });

  test('gradients, of views too', () => {
    gradCheck64((x) => dropout(x!.t(), 0.4, { generator: generator(3) }).square(), [leaf64([5, 7])]);
  });

  test('nothing is dropped with p = 0 or outside of training, everything with p = 1; half types stay', () => {
    const x = tensor([1, 2, 3]);
    expect(dropout(x, 0).toArray()).toEqual([1, 2, 3]);
    expect(dropout(x, 0.9, { training: false }).toArray()).toEqual([1, 2, 3]);
    expect(dropout(x, 1).toArray()).toEqual([0, 0, 0]);
    const half = dropout(ones([64], { dtype: 'bfloat16' }), 0.5, { generator: generator(1) });
    expect(half.dtype).toBe('bfloat16');
    expect(new Set(half.to('float32').dataSync() as Float32Array)).toEqual(new Set([0, 2]));
    for (const p of [-0.1, 1.1, NaN]) expect(codeOf(() => dropout(x, p))).toBe('ERR_TENSOR_ARGUMENT');
    expect(codeOf(() => dropout(tensor([1], { dtype: 'int32' })))).toBe('ERR_TENSOR_DTYPE');
  });
});
