// Writes to slices by index: indexAdd, indexCopy, indexFill.
import { badFillValue } from '../../checks/argument-errors.ts';
import { checkFits } from '../../checks/arguments.ts';
import { checkOptions, optionChecks } from '../../checks/options.ts';
import { finite } from '../../checks/value-checks.ts';
import { scope } from '../../core/context.ts';
import { full } from '../../core/creation.ts';
import { checkedDim, sameShape } from '../../core/shape.ts';
import { type Operand, Tensor } from '../../core/tensor.ts';
import { lookupShapes, mixedDtypes, needsRank } from '../../errors.ts';
import { mul } from '../elementwise/binary.ts';
import { contiguous, requireOperand, requireTensor } from '../elementwise/convert.ts';
import { expand, reshape } from '../shape/views.ts';
import { asRow, countedFromEnd, prepared, sizesOf } from './lookup.ts';
import { written } from './moves.ts';

/** Options of indexAdd(). */
export interface IndexAddOptions {
  /** Number by which the source is multiplied first. Default 1. */
  readonly alpha?: number;
}

const indexAddOptions = optionChecks<IndexAddOptions>({ alpha: finite });

/** Writes slice i of `source` to slice index[i] of a copy of `a`, along `dim`. */
function slices(
  name: string,
  op: 'add' | 'replace',
  a: Tensor,
  dim: number,
  index: Tensor,
  source: Tensor,
): Tensor {
  if (source.dtype !== a.dtype) throw mixedDtypes(name, a.dtype, source.dtype);
  if (index.rank > 1) throw needsRank(`${name}: index`, 1, index.shape);
  return scope(() => {
    const [whole, given, positions] = [asRow(a), asRow(source), asRow(index)];
    const at = checkedDim(name, dim, whole.rank);
    if (!sameShape(given.shape, whole.shape.with(at, positions.count)))
      throw lookupShapes(name, a.shape, source.shape);
    const sizes = sizesOf(whole.shape, at, positions.count, false);
    const ready = prepared(name, positions, whole.shape[at]!);
    return reshape(written(name, op, whole, contiguous(given), ready, whole.shape, sizes), a.shape);
  });
}

/** Adds slice i of `source`, times `alpha`, to slice index[i] of a copy of `a`, along `dim`; `index` is [count]. */
export function indexAdd(
  a: Tensor,
  dim: number,
  index: Tensor,
  source: Tensor,
  options: IndexAddOptions = {},
): Tensor {
  requireTensor('indexAdd', a);
  requireTensor('indexAdd', index);
  requireTensor('indexAdd', source);
  checkOptions('indexAdd', options, indexAddOptions);
  // As PyTorch 2; indexCopy also takes [1] for a 0-d tensor, and the reverse.
  if (source.rank !== a.rank) throw lookupShapes('indexAdd', a.shape, source.shape);
  const { alpha = 1 } = options;
  if (alpha === 1) return slices('indexAdd', 'add', a, dim, index, source);
  checkFits('indexAdd', alpha, a.dtype);
  return scope(() => slices('indexAdd', 'add', a, dim, index, mul(source, alpha)));
}

/** Replaces slice index[i] of a copy of `a` by slice i of `source`, along `dim`; `index` is [count]. */
export function indexCopy(a: Tensor, dim: number, index: Tensor, source: Tensor): Tensor {
  requireTensor('indexCopy', a);
  requireTensor('indexCopy', index);
  requireTensor('indexCopy', source);
  return slices('indexCopy', 'replace', a, dim, index, source);
}

/**
 * Sets the slices of a copy of `a` that `index` [count] names along `dim` to a number, or to a 0-d tensor. Negative
 * indices count from the end.
 */
export function indexFill(a: Tensor, dim: number, index: Tensor, value: Operand): Tensor {
  requireTensor('indexFill', a);
  requireTensor('indexFill', index);
  if (typeof value !== 'number') requireOperand('indexFill', 'the value', value);
  else checkFits('indexFill', value, a.dtype);
  if (value instanceof Tensor && value.rank > 0) throw badFillValue('indexFill', value.shape);
  const rows = asRow(a);
  const at = checkedDim('indexFill', dim, rows.rank);
  const shape = rows.shape.with(at, index.count);
  return scope(() => {
    const { dtype, device } = a;
    const source = typeof value === 'number' ? full(shape, value, { dtype, device }) : expand(value, shape);
    const positions = countedFromEnd('indexFill', index, rows.shape[at]!);
    return slices('indexFill', 'replace', a, dim, positions, source);
  });
}
