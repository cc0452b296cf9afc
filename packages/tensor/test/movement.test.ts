import { describe, expect, test } from 'vitest';
import { arange, type DType, generator, gradCheck, randn, type Tensor, tensor, zeros } from '../src/index.ts';
import { codeOf } from './code-of.ts';

const leaf = (): Tensor => randn([2, 1, 3], { generator: generator(2), requiresGrad: true });

describe('views', () => {
  test('reshape, flatten, squeeze and unsqueeze share the memory', () => {
    const a = arange(6);
    const views = [
      a.reshape([2, 3]),
      a.reshape([-1, 2]),
      a.unsqueeze(0),
      a.unsqueeze(0).squeeze(),
      a.detach(),
    ];
    a.dataSync()[4] = 40;
    expect(views.map((v) => v.shape)).toEqual([[2, 3], [3, 2], [1, 6], [6], [6]]);
    for (const v of views) expect(v.dataSync()[4]).toBe(40);
    a.dispose();
    for (const v of views) expect(v.dataSync()[4]).toBe(40);
  });

  test('change shapes as PyTorch does', () => {
    const a = zeros([2, 1, 3, 1]);
    expect(a.flatten().shape).toEqual([6]);
    expect(a.flatten(1).shape).toEqual([2, 3]);
    expect(a.flatten(1, 2).shape).toEqual([2, 3, 1]);
    expect(a.squeeze().shape).toEqual([2, 3]);
    expect(a.squeeze(1).shape).toEqual([2, 3, 1]);
    expect(a.unsqueeze(-1).shape).toEqual([2, 1, 3, 1, 1]);
    expect(tensor(1).flatten().shape).toEqual([1]);
    expect(zeros([0, 4]).reshape([2, 0]).shape).toEqual([2, 0]);
  });

  test('refuse what does not fit', () => {
    expect(() => arange(6).reshape([4, 2])).toThrow('reshape: cannot make [4, 2] of [6]');
    for (const shape of [
      [-1, 4],
      [-1, -1],
      [1.5, 4],
      [-2, -3],
    ]) {
      expect(codeOf(() => arange(6).reshape(shape))).toBe('ERR_TENSOR_SHAPE');
    }
    expect(codeOf(() => zeros([0]).reshape([-1, 0]))).toBe('ERR_TENSOR_SHAPE');
    expect(codeOf(() => zeros([2, 3]).squeeze(0))).toBe('ERR_TENSOR_SHAPE');
  });

  test('pass gradients on', () => {
    gradCheck((x) => x!.reshape([3, 2]).square(), [leaf()]);
    gradCheck((x) => x!.flatten().square(), [leaf()]);
    gradCheck((x) => x!.squeeze(1).unsqueeze(0).square(), [leaf()]);
  });
});

describe('transpose', () => {
  test('swaps two dimensions', () => {
    expect(
      tensor([
        [1, 2, 3],
        [4, 5, 6],
      ])
        .t()
        .toArray(),
    ).toEqual([
      [1, 4],
      [2, 5],
      [3, 6],
    ]);
    const a = arange(24).reshape([2, 3, 4]);
    expect(a.transpose(0, 2).shape).toEqual([4, 3, 2]);
    expect(a.transpose(0, 2).dataSync()[5]).toBe(12 + 8 + 0);
    expect(a.transpose(-1, 0).transpose(0, -1).toArray()).toEqual(a.toArray());
    expect(codeOf(() => a.t())).toBe('ERR_TENSOR_SHAPE');
  });

  test('passes gradients on', () => {
    gradCheck((x) => x!.transpose(0, 2).mul(tensor([[[1, 2]], [[3, 4]], [[5, 6]]])), [leaf()]);
  });
});

describe('clone and to', () => {
  test('clone has memory of its own and passes the gradient on', () => {
    const a = arange(3);
    const b = a.clone();
    a.dataSync()[0] = 9;
    expect(b.toArray()).toEqual([0, 1, 2]);
    gradCheck((x) => x!.clone().square(), [leaf()]);
  });

  test('to converts towards zero, and returns the tensor itself where nothing changes', () => {
    const a = tensor([-1.7, 2.9]);
    for (const dtype of ['int32', 'int64'] as DType[]) expect(a.to(dtype).toArray()).toEqual([-1, 2]);
    expect(a.to('int64').to('float32').toArray()).toEqual([-1, 2]);
    expect(a.to('float32')).toBe(a);
  });
});
