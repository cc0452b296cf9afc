// ctcLoss: all alignments of small targets by enumeration, its gradient by differences, and what it refuses.
import { describe, expect, test } from 'vitest';
import { ctcLoss, grad, logSoftmax, randn, type Tensor, tensor } from '../../../../src/index.ts';
import { codeOf } from '../../../support/code-of.ts';
import { gradCheck64, leaf64 } from '../../../support/leaf64.ts';

/** Returns −log of the probability of all sequences of classes that collapse to the target. */
function enumerated(logProbs: number[][], target: readonly number[], blank: number): number {
  let total = 0;
  const visit = (path: number[], log: number): void => {
    const row = logProbs[path.length];
    if (row) {
      for (const [c, each] of row.entries()) visit([...path, c], log + each);
      return;
    }
    const collapsed = path.filter((c, i) => c !== blank && c !== path[i - 1]);
    if (collapsed.join() === target.join()) total += Math.exp(log);
  };
  visit([], 0);
  return -Math.log(total);
}

const frames = (): Tensor => logSoftmax(randn([5, 1, 3]).to('float64'), -1);

describe('ctcLoss', () => {
  test.each([[[]], [[1]], [[1, 2]], [[1, 1]], [[2, 2, 1]], [[1, 2, 1, 2, 1]]])(
    'is that of all alignments of %j',
    (target) => {
      const logProbs = frames();
      const labels = tensor(target, { dtype: 'int64', shape: [target.length] });
      const loss = ctcLoss(logProbs, labels, [5], [target.length], { reduction: 'sum' }).item();
      expect(loss).toBeCloseTo(enumerated(logProbs.select(1, 0).toArray() as number[][], target, 0), 10);
    },
  );

  test('has the gradient with respect to logarithms of probabilities', () => {
    const targets = tensor(
      [
        [1, 1],
        [2, 0],
      ],
      { dtype: 'int64' },
    );
    const x = leaf64([5, 2, 3]);
    gradCheck64((logits) => ctcLoss(logSoftmax(logits, -1), targets, [5, 4], [2, 1]), [x]);
    gradCheck64((logProbs) => ctcLoss(logProbs, targets, [5, 4], [2, 1], { reduction: 'sum' }), [x]);
  });

  test('of a target that does not fit is infinite, or 0 with zeroInfinity', () => {
    const x = tensor([[[-1, -2]], [[-1, -2]]], { requiresGrad: true });
    const targets = tensor([1n, 1n]);
    expect(ctcLoss(x, targets, [2], [2]).item()).toBe(Infinity);
    const loss = ctcLoss(x, targets, [2], [2], { zeroInfinity: true });
    expect(loss.item()).toBe(0);
    expect(grad(loss, x)[0]!.toArray()).toEqual([[[0, 0]], [[0, 0]]]);
  });

  test('refuses a second gradient, as PyTorch', () => {
    const x = tensor([[[-1, -2]], [[-1, -2]]], { requiresGrad: true });
    const loss = ctcLoss(x, tensor([1n]), [2], [1]);
    expect(codeOf(() => grad(loss, x, { createGraph: true }))).toBe('ERR_TENSOR_AUTOGRAD');
  });

  test('refuses labels, lengths and shapes that do not fit', () => {
    const x = frames();
    const one = tensor([1n]);
    expect(codeOf(() => ctcLoss(x, tensor([3n]), [5], [1]))).toBe('ERR_TENSOR_LABEL');
    expect(() => ctcLoss(x, tensor([0n]), [5], [1])).toThrow(
      'ctcLoss: the target at position 0 is 0, the blank.',
    );
    expect(() => ctcLoss(x, one, [6], [1])).toThrow(
      'ctcLoss: expected inputLengths from 0 to 5, got 6 for sequence 0.',
    );
    expect(codeOf(() => ctcLoss(x, one, [5, 5], [1]))).toBe('ERR_TENSOR_ARGUMENT');
    expect(codeOf(() => ctcLoss(x, tensor([1n, 2n]), [5], [1]))).toBe('ERR_TENSOR_SHAPE');
    expect(codeOf(() => ctcLoss(x, one, [5], [1], { blank: 3 }))).toBe('ERR_TENSOR_ARGUMENT');
    expect(codeOf(() => ctcLoss(x, tensor([1]), [5], [1]))).toBe('ERR_TENSOR_DTYPE');
    expect(codeOf(() => ctcLoss(tensor([1, 2]), one, [1], [1]))).toBe('ERR_TENSOR_SHAPE');
  });
});
