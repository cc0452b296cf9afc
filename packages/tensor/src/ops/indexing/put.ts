// Writes to the elements that indices name: x.set(…) in place, indexPut() in a copy.
import { customFunction } from '../../autograd/custom.ts';
import { isRecording } from '../../autograd/node.ts';
import { kernels } from '../../backends/index.ts';
import { indexListNeeded, notAnOperandOf } from '../../checks/argument-errors.ts';
import { checkFits } from '../../checks/arguments.ts';
import { checkOptions, optionChecks } from '../../checks/options.ts';
import { flag } from '../../checks/value-checks.ts';
import { noGrad, scope } from '../../core/context.ts';
import { full } from '../../core/creation.ts';
import { copyInto } from '../../core/memory/transfer.ts';
import type { Range } from '../../core/op-options.ts';
import { broadcastShapes, type Shape, sameShape } from '../../core/shape.ts';
import { type Index, type Operand, Tensor } from '../../core/tensor.ts';
import { cannotStretchInto, mixedDtypes, recordedInPlace, writtenTwice } from '../../errors.ts';
import { clone, contiguous, requireTensor } from '../elementwise/convert.ts';
import { add_, copy_, hasTwins } from '../elementwise/in-place.ts';
import { jointDevice } from '../joint-device.ts';
import { expand, part } from '../shape/views.ts';
import { arranged } from './arrange.ts';
import { at } from './at.ts';
import { type IndexPlan, planOf } from './index-list.ts';

/** Options of set() and indexPut(). */
export interface PutOptions {
  /** Whether values are added, once for each time that an element is named. Default false: the last one stays. */
  readonly accumulate?: boolean;
}

const putOptions = optionChecks<PutOptions>({ accumulate: flag });

/** Throws unless `value` can be broadcast to `shape`. */
function checkStretch(op: string, value: Operand, shape: Shape): void {
  const own = typeof value === 'number' ? [] : value.shape;
  if (!sameShape(broadcastShapes(op, shape, own), shape)) throw cannotStretchInto(op, own, shape);
}

/** Returns the values as a dense tensor of their own of this shape. */
function spread(op: string, value: Operand, like: Tensor, shape: Shape): Tensor {
  checkStretch(op, value, shape);
  if (typeof value !== 'number') {
    const dense = contiguous(expand(value, shape));
    return dense.storage === like.storage ? clone(dense) : dense;
  }
  checkFits(op, value, like.dtype);
  return full(shape, value, { dtype: like.dtype, device: like.device });
}

/** Writes to the elements of a plan with index tensors. */
function putAt(
  op: string,
  view: Tensor,
  { tensorIndices }: IndexPlan,
  value: Operand,
  accumulate: boolean,
): void {
  if (typeof value !== 'number' && value.dtype !== view.dtype) throw mixedDtypes(op, view.dtype, value.dtype);
  if (hasTwins(view)) throw writtenTwice(op, view.shape);
  const { moved, positions, sizes, shape } = arranged(op, view, tensorIndices);
  const source = spread(op, value, view, shape);
  const target = contiguous(moved);
  const operands = { out: target.strided, a: source.strided, index: positions.strided };
  kernels().scatter(operands, { ...sizes, op: accumulate ? 'add' : 'replace' });
  if (target !== moved) copyInto(moved.strided, moved.shape, target.strided);
}

/**
 * Writes `value`, a number or a tensor that is broadcast, to the elements that `indices` name, a list as at() takes:
 * PyTorch's `a[...] = value`. Changes `a` in place and returns it. It is not recorded, so it throws for a tensor that
 * requires a gradient, except in noGrad(). If indices are tensors, `value` has the dtype of `a`. If an element is named
 * several times, the last value stays.
 */
export function set(a: Tensor, indices: readonly Index[], value: Operand, options: PutOptions = {}): Tensor {
  checkPut('set', a, indices, value, options);
  return put('set', a, indices, value, options);
}

function checkPut(
  op: string,
  a: Tensor,
  indices: readonly Index[],
  value: Operand,
  options: PutOptions,
): void {
  requireTensor(op, a);
  if (typeof value !== 'number' && !(value instanceof Tensor)) throw notAnOperandOf(op, value);
  if (!Array.isArray(indices)) throw indexListNeeded(op, indices);
  checkOptions(op, options, putOptions);
}

function put(op: string, a: Tensor, indices: readonly Index[], value: Operand, options: PutOptions): Tensor {
  if (isRecording(a, typeof value === 'number' ? null : value)) throw recordedInPlace(op);
  jointDevice(op, a, value);
  const plan = planOf(op, a, indices);
  scope(() => {
    const view = part(op, a, plan.view);
    if (plan.tensorIndices.length > 0) {
      putAt(op, view, plan, value, options.accumulate === true);
      a.storage.version++;
    } else if (options.accumulate === true) add_(view, value);
    else copy_(view, value);
  });
  return a;
}

/** Returns the shape of the indexed elements. */
function shapeAt(op: string, a: Tensor, indices: readonly Index[]): Shape {
  const { view, tensorIndices } = planOf(op, a, indices);
  const whole = part(op, a, view);
  return tensorIndices.length === 0 ? whole.shape : arranged(op, whole, tensorIndices).shape;
}

const putFunction = (
  given: readonly Index[],
  options: PutOptions,
): ((a: Tensor, values: Tensor) => Tensor) => {
  // The caller may change its arrays before backward.
  const indices = given.map((index) => (Array.isArray(index) ? ([...index] as unknown as Range) : index));
  const tensors = indices.filter((index) => index instanceof Tensor);
  const isAdding = options.accumulate === true;
  return customFunction({
    name: 'indexPut',
    forward: (context, a: Tensor, values: Tensor) => {
      context.save(...tensors);
      return put('indexPut', clone(a), indices, values, options);
    },
    backward: (context, grad) => {
      const [...saved] = context.saved;
      const own = indices.map((index) => (index instanceof Tensor ? saved.shift()! : index));
      const [needsA, needsValues] = context.needsGrad;
      const toA = isAdding ? grad : needsA ? put('indexPut', clone(grad), own, 0, {}) : null;
      return [toA, needsValues ? at(grad, ...own) : null];
    },
  });
};

/**
 * Returns a copy of `a` with `values` at the elements that `indices` name, a list that at() accepts. Gradients reach
 * `a` and `values`. Otherwise it has the rules of set().
 */
export function indexPut(
  a: Tensor,
  indices: readonly Index[],
  values: Operand,
  options: PutOptions = {},
): Tensor {
  checkPut('indexPut', a, indices, values, options);
  if (!isRecording(a, typeof values === 'number' ? null : values))
    return scope(() => {
      const copy = noGrad(() => clone(a));
      return put('indexPut', copy, indices, values, options);
    });
  return scope(() => {
    const shape = noGrad(() => shapeAt('indexPut', a, indices));
    const source = typeof values === 'number' ? spread('indexPut', values, a, shape) : values;
    checkStretch('indexPut', source, shape);
    return putFunction(indices, options)(a, expand(source, shape));
  });
}
