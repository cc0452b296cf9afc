// Selects elements by a mask.

import { isRecording, record } from '../../autograd/node.ts';
import { kernels } from '../../backends/index.ts';
import type { Strided } from '../../backends/operands.ts';
import { badFillValue } from '../../checks/argument-errors.ts';
import { checkFits } from '../../checks/arguments.ts';
import { type DType, resultType } from '../../core/dtype.ts';
import { broadcastShapes } from '../../core/shape.ts';
import { empty, type Operand, Tensor } from '../../core/tensor.ts';
import { needsMask } from '../../errors.ts';
import { Calculation, contribute, unstretched } from '../gradient.ts';
import { jointDevice } from '../joint-device.ts';
import { jointShape, shapeOf, stretched } from './binary.ts';
import { requireTensor } from './convert.ts';

/** Returns a where `mask` (bool) is true, else b. All are broadcast. A number must fit the dtype of the result. */
export function where(mask: Tensor, a: Operand, b: Operand): Tensor {
  jointShape('where', a, b);
  const dtype = resultType(a, b);
  for (const operand of [a, b]) if (typeof operand === 'number') checkFits('where', operand, dtype);
  return choose('where', mask, a, b, dtype);
}

/**
 * Returns a copy of `a` with `value`, a number or a tensor without dimensions, where `mask` is true. The
 * dtype stays that of `a`: integers drop a fraction, and a number that does not fit throws.
 */
export function maskedFill(a: Tensor, mask: Tensor, value: Operand): Tensor {
  requireTensor('maskedFill', a);
  if (!(value instanceof Tensor)) checkFits('maskedFill', value, a.dtype);
  else if (value.rank > 0) throw badFillValue('maskedFill', value.shape);
  return choose('maskedFill', mask, value, a, a.dtype);
}

/** Converts a number to an element of the dtype; a bool is true for any number but 0. */
const element = (operand: Operand, dtype: DType): Operand =>
  typeof operand === 'number' && dtype === 'bool' ? Number(operand !== 0) : operand;

function choose(name: string, mask: Tensor, a: Operand, b: Operand, dtype: DType): Tensor {
  requireTensor(name, mask);
  if (mask.dtype !== 'bool') throw needsMask(name, mask.dtype);
  const shape = broadcastShapes(name, mask.shape, jointShape(name, a, b));
  const out = empty(dtype, shape, jointDevice(name, mask, a, b));
  const isChosen = stretched(mask, shape);
  const [x, y] = [a, b].map((operand) => stretched(element(operand, dtype), shape));
  kernels().map('where', dtype, shape, out.strided, isChosen, x!, y);
  const toA = typeof a === 'number' ? null : a.target;
  const toB = typeof b === 'number' ? null : b.target;
  if (!isRecording(typeof a === 'number' ? out : a, typeof b === 'number' ? null : b)) return out;
  const [aShape, bShape] = [shapeOf(a), shapeOf(b)];
  const maskShape = mask.shape;
  return record(name, out, [toA, toB], [mask.storage], (grad, graph) => {
    const k = new Calculation(dtype, shape, grad.memory.device, graph);
    if (k.graph) {
      k.graph.bind(grad.dense, k.graph.grad);
      const original = unstretched(isChosen as Strided, shape, maskShape);
      k.graph.bind(isChosen, k.graph.saved(original, maskShape, null));
    }
    if (toA) contribute(toA, k, aShape, (into) => k.map('where', into, isChosen, grad.dense, 0));
    if (toB) contribute(toB, k, bShape, (into) => k.map('where', into, isChosen, 0, grad.dense));
  });
}
