// Tests views, operations in place, clone and to.
import { describe, expect, test } from 'vitest';
import {
  arange,
  type DType,
  generator,
  gradCheck,
  memory,
  noGrad,
  randn,
  type Tensor,
  tensor,
  zeros,
} from '../../../src/index.ts';
import { codeOf } from '../../support/code-of.ts';

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
    expect(codeOf(() => zeros([2, 3]).squeeze(2))).toBe('ERR_TENSOR_SHAPE');
    expect(codeOf(() => zeros([1, 3]).squeeze([0, -2]))).toBe('ERR_TENSOR_SHAPE');
    expect(() => zeros([1, 2, 3]).t()).toThrow('t: expected at most 2 dimensions, got shape [1, 2, 3]');
    expect(codeOf(() => tensor(1).transpose(0, 1))).toBe('ERR_TENSOR_SHAPE');
  });

  test('squeeze leaves dimensions of another size, and takes several', () => {
    const a = zeros([1, 3, 1, 2]);
    const shapes = [1, -1, [], [0, 1], [2, 0, 3], [-2]].map((dims) => a.squeeze(dims).shape);
    expect(shapes).toEqual([
      [1, 3, 1, 2],
      [1, 3, 1, 2],
      [1, 3, 1, 2],
      [3, 1, 2],
      [3, 2],
      [1, 3, 2],
    ]);
    for (const dims of [undefined, 0, -1, [0]]) expect(tensor(7).squeeze(dims).shape).toEqual([]);
    expect(zeros([2, 1, 0]).squeeze([1, 2]).shape).toEqual([2, 0]);
    const view = a.squeeze(1);
    view.fill_(5);
    expect(a.sum().item()).toBe(30);
    view.dispose();
    expect(a.sum().item()).toBe(30);
    gradCheck((x) => x!.transpose(0, 2).squeeze([0, 1]).square(), [leaf()]);
    gradCheck((x) => x!.squeeze(0).square(), [leaf()]);
  });

  test('t() of fewer than two dimensions is the tensor', () => {
    const row = arange(6).at([0, 6, 2]);
    expect(row.t().toArray()).toEqual([0, 2, 4]);
    expect(tensor(3).t().item()).toBe(3);
    expect(tensor(3).transpose(0, -1).item()).toBe(3);
    expect(zeros([0]).t().shape).toEqual([0]);
    gradCheck((x) => x!.flatten().t().square(), [leaf()]);
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

describe('strided views', () => {
  const base = (): Tensor => arange(24).reshape([2, 3, 4]);
  const views: Record<string, (x: Tensor) => Tensor> = {
    transpose: (x) => x.transpose(0, 2),
    permute: (x) => x.permute([1, 2, 0]),
    narrow: (x) => x.narrow(1, 1, 2),
    select: (x) => x.select(2, -1),
    expand: (x) => x.narrow(0, 1, 1).expand([5, 3, -1]),
    'expand with a new dimension': (x) => x.expand([2, 2, 3, 4]),
    step: (x) => x.at('...', [null, null, 3]),
    at: (x) => x.at(':', [-2], 1),
    'at with dots and a new dimension': (x) => x.at('...', null, 2),
    split: (x) => x.split([1, 2], 1)[1]!,
    chunk: (x) => x.chunk(3, 2)[1]!,
    'reshape of a part': (x) => x.narrow(1, 0, 2).reshape([2, 2, 2, 2]),
    view: (x) => x.narrow(0, 1, 1).view([4, 3]),
    squeeze: (x) => x.narrow(0, 1, 1).transpose(0, 1).squeeze(1),
    unsqueeze: (x) => x.transpose(0, 1).unsqueeze(1),
  };

  test.each(Object.entries(views))('%s shares memory and passes gradients on, twice', (_, view) => {
    const a = base();
    const b = view(a);
    const before = b.toArray();
    a.copy_(a.add(100));
    expect(b.toArray()).not.toEqual(before);
    expect(b.sub(100).toArray()).toEqual(before);
    expect(b.contiguous().isContiguous).toBe(true);
    expect(Array.from(b.dataSync() as Float32Array)).toEqual((b.toArray() as number[]).flat(Infinity));
    const x = randn([2, 3, 4], { generator: generator(3) }).to('float64');
    x.requiresGrad = true;
    const options = { epsilon: 1e-5, tolerance: 1e-7 };
    gradCheck((y) => view(y!).square(), [x], options);
    gradCheck(
      (y) =>
        view(y!)
          .exp()
          .sum()
          .mul(view(y!.mul(2)).sum())
          .add(y!.sum()),
      [x],
      options,
    );
  });

  test('at follows Python: negative positions, ranges that are cut, steps, dots and new dimensions', () => {
    const a = base();
    expect(a.at(1, -1, 0).item()).toBe(20);
    expect(a.at(0).shape).toEqual([3, 4]);
    expect(a.at(':', [1, 99], [-2]).shape).toEqual([2, 2, 2]);
    expect(a.at(0, 0, [1, null, 2]).toArray()).toEqual([1, 3]);
    expect(a.at(0, 0, [3, 1]).shape).toEqual([0]);
    expect(a.at('...', 1).toArray()).toEqual(a.select(2, 1).toArray());
    expect(a.at(null, '...', null).shape).toEqual([1, 2, 3, 4, 1]);
    for (const indices of [[2], [0, 0, 0, 0], ['...', '...']]) {
      expect(codeOf(() => a.at(...(indices as never[])))).toBe('ERR_TENSOR_SHAPE');
    }
  });

  test('refuse what does not fit', () => {
    const a = base();
    expect(codeOf(() => a.at([0, 1, 0]))).toBe('ERR_TENSOR_ARGUMENT');
    for (const wrong of [
      () => a.permute([0, 1, 1]),
      () => a.narrow(1, 2, 2),
      () => a.select(0, 2),
      () => a.expand([2, 5, 4]),
      () => a.split([1, 1], 1),
      () => a.transpose(0, 1).view([6, 4]),
    ]) {
      expect(codeOf(wrong)).toBe('ERR_TENSOR_SHAPE');
    }
  });

  test('reshape copies only where strides cannot say it', () => {
    const a = base();
    const shares = (b: Tensor): boolean => b.storage === a.storage;
    expect(shares(a.reshape([4, 6]))).toBe(true);
    expect(shares(a.narrow(0, 1, 1).reshape([2, 6]))).toBe(true);
    expect(shares(a.narrow(2, 0, 2).reshape([6, 2]))).toBe(true);
    expect(shares(a.transpose(0, 1).reshape([3, 2, 2, 2]))).toBe(true);
    expect(shares(a.transpose(0, 1).reshape([6, 4]))).toBe(false);
    expect(a.transpose(0, 1).reshape([6, 4]).at(1).toArray()).toEqual([12, 13, 14, 15]);
  });

  test('a view keeps the memory of its tensor alive, and counts once', () => {
    const before = memory();
    const a = base();
    const part = a.narrow(2, 1, 2);
    expect(memory().tensors).toBe(before.tensors + 1);
    a.dispose();
    expect(memory().bytes).toBe(before.bytes + 96);
    expect(part.sum().item()).toBe(138);
    part.dispose();
  });
});

describe('in place', () => {
  test('writes through views, and takes broadcasting and other dtypes', () => {
    const a = zeros([2, 3]);
    a.at(':', 1).fill_(7);
    a.t()
      .at(2)
      .copy_(tensor([1, 2], { dtype: 'int64' }));
    a.add_(tensor([10, 0, 0])).mul_(2);
    expect(a.toArray()).toEqual([
      [20, 14, 2],
      [20, 14, 4],
    ]);
    expect(codeOf(() => a.at(0).copy_(zeros([2, 3])))).toBe('ERR_TENSOR_SHAPE');
  });

  test('is refused while operations on the tensor are recorded, and allowed inside noGrad', () => {
    const x = leaf();
    expect(codeOf(() => x.fill_(1))).toBe('ERR_TENSOR_AUTOGRAD');
    expect(codeOf(() => zeros([2, 1, 3]).copy_(x))).toBe('ERR_TENSOR_AUTOGRAD');
    noGrad(() => x.fill_(1));
    expect(x.sum().item()).toBe(6);
  });

  test('backward refuses a saved value that was changed since, also through a view', () => {
    const x = leaf();
    const loss = x.square().sum();
    noGrad(() => x.at(0).zero_());
    expect(() => loss.backward()).toThrow("a value that 'square' saved was changed in place");
    const y = leaf();
    const total = y.sum();
    noGrad(() => y.zero_());
    total.backward();
    expect(y.grad!.sum().item()).toBe(6);
  });
});

test('more than 16 dimensions are refused by every function that would make them', () => {
  const most = zeros(new Array<number>(16).fill(1));
  const many = new Array<number>(17).fill(1);
  for (const op of [
    () => zeros(many),
    () => most.reshape(many),
    () => most.view(many),
    () => most.unsqueeze(0),
    () => most.expand(many),
    () => most.repeat(many),
  ]) {
    expect(op).toThrow(/^\w+: expected at most 16 dimensions, got 17: \[1, 1/);
    expect(codeOf(op)).toBe('ERR_TENSOR_SHAPE');
  }
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
