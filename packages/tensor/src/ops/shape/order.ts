// Running sums, sorting, and triangles of matrices.

import { graphOf } from '../../autograd/graph.ts';
import { isRecording, record } from '../../autograd/node.ts';
import { kernels } from '../../backends/index.ts';
import { notOfBool } from '../../checks/argument-errors.ts';
import { checkInteger } from '../../checks/arguments.ts';
import { checkOptions, optionChecks, refuseOptions } from '../../checks/options.ts';
import { flag } from '../../checks/value-checks.ts';
import { scope } from '../../core/context.ts';
import { isFloat } from '../../core/dtype.ts';
import { checkedDim, countOf } from '../../core/shape.ts';
import { empty, type Sorted, type Tensor } from '../../core/tensor.ts';
import { badOption, needsRank, shown } from '../../errors.ts';
import { recast } from '../elementwise/autocast.ts';
import { contiguous, requireTensor, to } from '../elementwise/convert.ts';
import { gather } from '../indexing/lookup.ts';
import { reshape, transpose } from './views.ts';

/** Computes running sums along `dim`. Integers and bool are summed in int64. */
export function cumsum(a: Tensor, dim: number): Tensor;
export function cumsum(a: Tensor, dim: number, extra?: unknown): Tensor {
  if (extra !== undefined) refuseOptions('cumsum', extra);
  requireTensor('cumsum', a);
  const raised = recast('float32', [a], (wide) => cumsum(wide!, dim));
  if (raised) return raised;
  if (a.rank === 0) return scope(() => reshape(cumsum(reshape(a, [1]), dim), []));
  const at = checkedDim('cumsum', dim, a.rank);
  const dense = contiguous(isFloat(a.dtype) ? a : to(a, 'int64'));
  const out = empty(dense.dtype, a.shape, a.device);
  const [outer, size, inner] = [countOf(a.shape.slice(0, at)), a.shape[at]!, countOf(a.shape.slice(at + 1))];
  kernels().cumsum({ out: out.strided, a: dense.strided }, { outer, size, inner, reverse: false });
  if (dense !== a) dense.dispose();
  if (!isRecording(a)) return out;
  const target = a.target!;
  return record('cumsum', out, [target], [], (grad, graph) => {
    if (graph) {
      graphOf(graph).send(target, cumsum(graphOf(graph).grad.flip(at), at).flip(at));
      return;
    }
    const into = target.begin();
    kernels().cumsum({ out: into.dense, a: grad.dense }, { outer, size, inner, reverse: true });
    target.end(into);
  });
}

const sortOptions = optionChecks<{ readonly descending?: boolean }>({ descending: flag });
const topkOptions = optionChecks<{ readonly largest?: boolean }>({ largest: flag });

/** Sorts along `dim`. Equal elements keep their order; NaN counts as the largest. */
export function sort(a: Tensor, dim = -1, options: { readonly descending?: boolean } = {}): Sorted {
  requireTensor('sort', a);
  checkOptions('sort', options, sortOptions);
  if (a.rank === 0) return ofOne(a, (row) => sort(row, dim, options));
  const at = checkedDim('sort', dim, a.rank);
  return sorted(a, at, a.shape[at]!, options.descending ?? false);
}

/** Returns the `k` largest (or smallest) elements along `dim`, in order. */
export function topk(a: Tensor, k: number, dim = -1, options: { readonly largest?: boolean } = {}): Sorted {
  requireTensor('topk', a);
  if (a.dtype === 'bool') throw notOfBool('topk', ".to('uint8')");
  checkOptions('topk', options, topkOptions);
  if (a.rank === 0) return ofOne(a, (row) => topk(row, k, dim, options));
  const at = checkedDim('topk', dim, a.rank);
  const size = a.shape[at]!;
  if (!Number.isSafeInteger(k) || k < 0 || k > size)
    throw badOption('topk: k', `an integer from 0 to ${size}`, shown(k));
  return sorted(a, at, k, options.largest ?? true);
}

/** Runs `op` on a tensor without dimensions as on a row of one element. The result has no dimensions, as in PyTorch. */
export function ofOne(a: Tensor, op: (row: Tensor) => Sorted): Sorted {
  return scope(() => {
    const { values, indices } = op(reshape(a, [1]));
    return values.count === 0
      ? { values, indices }
      : { values: reshape(values, []), indices: reshape(indices, []) };
  });
}

function sorted(a: Tensor, dim: number, count: number, descending: boolean): Sorted {
  return scope(() => {
    const rows = contiguous(transpose(a.detach(), dim, -1));
    const cols = a.shape[dim]!;
    const shape = rows.shape.with(-1, count);
    const [values, indices] = [empty(a.dtype, shape, a.device), empty('int64', shape, a.device)];
    kernels().sort(
      { values: values.strided, indices: indices.strided, a: rows.strided },
      { rows: cols === 0 ? 0 : a.count / cols, cols, count, descending },
    );
    const found = transpose(indices, dim, -1);
    // Gathered, so that the gradient goes to the elements that the values came from.
    return { values: isRecording(a) ? gather(a, dim, found) : transpose(values, dim, -1), indices: found };
  });
}

/** Returns matrices (the last two dimensions) with zeros above a diagonal: 0 is the main one, 1 the one above it. */
export const tril = (a: Tensor, diagonal = 0): Tensor => triangle('tril', a, diagonal, false);
/** Returns matrices (the last two dimensions) with zeros below a diagonal: 0 is the main one, 1 the one above it. */
export const triu = (a: Tensor, diagonal = 0): Tensor => triangle('triu', a, diagonal, true);

function triangle(name: string, a: Tensor, diagonal: number, upper: boolean): Tensor {
  requireTensor(name, a);
  if (a.rank < 2) throw needsRank(name, 2, a.shape);
  checkInteger(name, 'diagonal', diagonal);
  const [rows, cols] = a.shape.slice(-2) as [number, number];
  const batch = countOf(a.shape.slice(0, -2));
  const dense = contiguous(a);
  const out = empty(a.dtype, a.shape, a.device);
  const sizes = { batch, rows, cols, diagonal, upper };
  kernels().triangle({ out: out.strided, a: dense.strided }, sizes);
  if (dense !== a) dense.dispose();
  if (!isRecording(a)) return out;
  const target = a.target!;
  return record(name, out, [target], [], (grad, graph) => {
    if (graph) {
      graphOf(graph).send(target, triangle(name, graphOf(graph).grad, diagonal, upper));
      return;
    }
    const into = target.begin();
    kernels().triangle({ out: into.dense, a: grad.dense }, sizes);
    target.end(into);
  });
}
