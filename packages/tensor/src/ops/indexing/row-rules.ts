// Operations of embeddings on the rows of a table, besides looking them up.
import { customFunction } from '../../autograd/custom.ts';
import { aNumber, nonNegative } from '../../checks/value-checks.ts';
import { noGrad, scope } from '../../core/context.ts';
import { ones, zeros } from '../../core/creation.ts';
import type { Tensor } from '../../core/tensor.ts';
import { add, div, gt, mul } from '../elementwise/binary.ts';
import { where } from '../elementwise/choose.ts';
import { requireTensor, to } from '../elementwise/convert.ts';
import { norm } from '../reduce/vector-norm.ts';
import { reshape } from '../shape/views.ts';
import { indexAdd } from './index-write.ts';
import { embedding, indexSelect } from './lookup.ts';

export const rowRuleChecks = {
  maxNorm: {
    expected: 'a number ≥ 0, or null',
    fits: (value: unknown): boolean => value === null || nonNegative.fits(value),
  },
  normType: aNumber,
};

/** Options that Embedding and embeddingBag() have in common. */
export interface RowRules {
  /**
   * Largest norm of a row: each call first shortens the longer ones of the rows that it looks up, in the table
   * itself, as PyTorch does. Default null: no limit.
   */
  readonly maxNorm?: number | null;
  /** Order of that norm, as in norm(). Default 2. */
  readonly normType?: number;
}

/** Shortens the rows of `weight` at `index` to `maxNorm`, in place. */
export function shortenRows(index: Tensor, weight: Tensor, maxNorm: number, normType = 2): void {
  requireTensor('embedding', index);
  if (index.count === 0) return;
  noGrad(() =>
    scope(() => {
      const line = reshape(index, [-1]);
      const rows = embedding(line, weight);
      const lengths = norm(rows, 1, { p: normType, keepDim: true });
      // In float64, because 1e-7 is lost beside a float32.
      const factors = to(div(maxNorm, add(to(lengths, 'float64'), 1e-7)), rows.dtype);
      const shorter = mul(rows, factors);
      weight.detach().indexCopy_(0, to(line, 'int64'), where(gt(lengths, maxNorm), shorter, rows));
    }),
  );
}

const divided = customFunction({
  name: 'scaleGradByFreq',
  forward: (context, rows: Tensor, shares: Tensor) => {
    context.save(shares);
    return rows;
  },
  backward: ({ saved: [shares] }, grad) => [mul(grad, shares!), null],
});

/**
 * Returns `rows`, the rows of a table of `count` rows at `index`. Their gradients are divided by how often `index`
 * names each.
 */
export function dividedByFrequency(rows: Tensor, index: Tensor, count: number): Tensor {
  if (index.count === 0) return rows;
  return scope(() => {
    const { device } = rows;
    const dtype = rows.dtype === 'float64' ? 'float64' : 'float32';
    const line = reshape(index, [-1]);
    const each = ones([line.count], { dtype, device });
    const frequencies = indexAdd(zeros([count], { dtype, device }), 0, line, each);
    const shares = to(div(1, indexSelect(frequencies, 0, line)), rows.dtype);
    return divided(rows, reshape(shares, [...index.shape, 1]));
  });
}
