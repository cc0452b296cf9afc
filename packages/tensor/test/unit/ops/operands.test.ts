// Tests that operands that are no tensors and arguments in the wrong place give proper errors, and edge cases that
// follow PyTorch.
import { describe, expect, test } from 'vitest';
import * as t from '../../../src/index.ts';
import { codeOf } from '../../support/code-of.ts';

const x = (): t.Tensor => t.ones([2, 3]);
const planes = (): t.Tensor => t.ones([1, 1, 3, 3]);
const no = null as never;

describe('an operand that is no tensor', () => {
  const calls: readonly [sentence: string, call: () => unknown][] = [
    ['linear: expected w to be a tensor, got null.', () => t.linear(x(), no)],
    ['linear: expected x to be a tensor, got undefined.', () => t.linear(undefined as never, x())],
    [
      'linear: expected x to be a tensor, got a promise, which needs an await.',
      () => t.linear(Promise.resolve(x()) as never, x()),
    ],
    [
      'linear: expected x to be a tensor, got a Float32Array, of which fromHost(array, shape) makes a tensor.',
      () => t.linear(new Float32Array(3) as never, x()),
    ],
    [
      'linear: expected x to be a tensor, got an object { data, shape }, of which fromHost(data, shape) makes a tensor.',
      () => t.linear({ data: new Float32Array(3), shape: [3] } as never, x()),
    ],
    [
      "linear: expected b to be a tensor, got the string 'b'.",
      () => t.linear(x(), t.ones([1, 3]), 'b' as never),
    ],
    ['conv2d: expected w to be a tensor, got null.', () => t.conv2d(planes(), no)],
    ['conv2d: expected x to be a tensor, got null.', () => t.conv2d(no, planes())],
    ['conv2d: expected b to be a tensor, got 0.', () => t.conv2d(planes(), planes(), 0 as never)],
    ['conv1d: expected w to be a tensor, got null.', () => t.conv1d(x(), no)],
    ['contiguous: expected a tensor, got null.', () => t.contiguous(no)],
    ['rmsNorm: expected a tensor, got null.', () => t.rmsNorm(no, [3])],
    ['layerNorm: expected a tensor, got null.', () => t.layerNorm(no, [3])],
    ['addLayerNorm: expected residual to be a tensor, got null.', () => t.addLayerNorm(x(), no, [3])],
    ['einsum: expected operand 1 to be a tensor, got null.', () => t.einsum('ij,jk->ik', x(), no)],
    [
      'einsum: expected operand 0 to be a tensor, got the array [1, 2].',
      () => t.einsum('i->', [1, 2] as never),
    ],
    [
      "einsum: expected an equation first, such as 'ij,jk->ik', got a tensor.",
      () => t.einsum(x() as never, x()),
    ],
    ['nllLoss: expected a tensor, got null.', () => t.nllLoss(x(), no)],
    ['oneHot: expected a tensor, got null.', () => t.oneHot(no)],
    ['batchNorm: expected runningMean to be a tensor, got 0.', () => t.batchNorm(x(), 0 as never)],
    ['grad: inputs: expected a tensor, got null.', () => t.grad(x(), no)],
    ['pinMemory: expected a tensor, got null.', () => t.pinMemory(no)],
    ['scope: expected a function, got a tensor.', () => t.scope(x() as never)],
    ['noGrad: expected a function, got undefined.', () => t.noGrad(undefined as never)],
    ['enableGrad: expected a function, got null.', () => t.enableGrad(no)],
    ['detectAnomaly: expected a function, got true.', () => t.detectAnomaly(true as never)],
    ['gradCheck: expected a function, got null.', () => t.gradCheck(no, [x()])],
    ['checkpoint: expected a function, got a tensor.', () => t.checkpoint(x() as never)],
  ];
  test.each(calls)('%s', (sentence, call) => {
    expect(call).toThrow(sentence);
    expect(codeOf(call)).toBe('ERR_TENSOR_ARGUMENT');
  });

  test('is refused under autocast, too', () => {
    t.autocast({ dtype: 'bfloat16' }, () => {
      expect(() => t.linear(x(), undefined as never)).toThrow(
        'linear: expected w to be a tensor, got undefined.',
      );
      expect(() => t.rmsNorm(no, [3])).toThrow('rmsNorm: expected a tensor, got null.');
    });
  });
});

describe('arguments of another kind', () => {
  test('bounds by name', () => {
    const sentence =
      'clamp: expected a tensor or a number as bound, got an object. Pass bounds by position: clamp(x, 0) for a lower one, clamp(x, null, 1) for an upper one.';
    expect(() => t.clamp(x(), { min: 0 } as never)).toThrow(sentence);
    expect(() => x().clamp(null, { max: 1 } as never)).toThrow(sentence);
  });

  test('texts of numbers are quoted', () => {
    expect(() => t.split(x(), ['1'] as never)).toThrow("got ['1'].");
    expect(() => t.chunk(x(), '1' as never)).toThrow("chunk: chunks: expected an integer ≥ 1, got '1'.");
    expect(() => t.topk(x(), '1' as never)).toThrow("topk: k: expected an integer from 0 to 3, got '1'.");
    expect(() => t.setNumThreads('1' as never)).toThrow("got '1'.");
  });

  test('sizes of unflatten and shifts of roll', () => {
    expect(() => t.unflatten(x(), 0, [])).toThrow('unflatten: sizes: expected at least one, got none.');
    expect(() => t.roll(x(), no)).toThrow('roll: expected the shifts to be an array of integers, got null.');
  });

  test('bool is refused where numbers are expected', () => {
    expect(() => t.arange(0, 2, 1, { dtype: 'bool' })).toThrow('arange: expected numbers, got bool.');
    const mask = t.tensor([true, false]);
    expect(() => t.clamp(mask, mask, mask)).toThrow('clamp: expected numbers, got bool.');
    expect(() => t.einsum('i,i->', mask, mask)).toThrow('einsum: expected numbers, got bool.');
  });
});

describe('as in PyTorch', () => {
  test('tensors without elements are changed in place, and expanded ones filled', () => {
    const empty = t.zeros([2, 0, 3]);
    expect(empty.add_(1).mul_(empty).fill_(2).zero_()).toBe(empty);
    const base = t.zeros([1, 2]);
    base.expand([3, 2]).fill_(4);
    expect(base.toArray()).toEqual([[4, 4]]);
    base.expand([3, 2]).zero_();
    expect(base.toArray()).toEqual([[0, 0]]);
    expect(() => base.expand([3, 2]).copy_(1)).toThrow('copy_: elements of the tensor [3, 2] share memory');
  });

  test('a bias of size 1 is added to all, and its gradient is the sum', () => {
    const b = t.tensor([2], { requiresGrad: true });
    const out = t.linear(x(), t.ones([4, 3]), b);
    expect(out.toArray()).toEqual([
      [5, 5, 5, 5],
      [5, 5, 5, 5],
    ]);
    out.sum().backward();
    expect(b.grad!.toArray()).toEqual([8]);
  });

  test('weights do not change the dtype of a loss, nor its shape', () => {
    const [p, y] = [t.full([2], 0.5, { dtype: 'float16' }), t.ones([2], { dtype: 'float16' })];
    expect(t.bce(p, y, { weight: t.ones([2]) }).dtype).toBe('float16');
    expect(t.bceWithLogits(t.zeros([2]), y, { posWeight: t.ones([2]) }).dtype).toBe('float16');
    expect(() => t.bce(t.ones([1]), t.ones([1]), { weight: t.ones([3]) })).toThrow(
      'bce: weight: expected a shape that can be broadcast to [1], that of the losses, got [3].',
    );
  });

  test('grad of one input gives back the graph behind the others', () => {
    const before = t.memory().bytes;
    t.scope(() => {
      const [a, w] = [t.ones([2, 2]), t.ones([4, 2])];
      a.requiresGrad = true;
      w.requiresGrad = true;
      const left = t.linear(a, w.narrow(0, 0, 2));
      const right = t.linear(t.ones([2, 2]), w.narrow(0, 2, 2)).relu();
      const [found] = t.grad(left.mul(right).sum(), [a]);
      expect(found!.toArray()).toEqual([
        [4, 4],
        [4, 4],
      ]);
    });
    expect(t.memory().bytes).toBe(before);
  });

  test('a part of the graph that grad did not run can still be used', () => {
    const [a, w] = [t.ones([2]), t.tensor([3, 4])];
    a.requiresGrad = true;
    w.requiresGrad = true;
    const square = w.square();
    t.grad(a.mul(square).sum(), [a]);
    square.sum().backward();
    expect(w.grad!.toArray()).toEqual([6, 8]);
  });
});
