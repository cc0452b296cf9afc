// Elements chosen by a mask or held in a range.
import { isRecording, record } from '../autograd/node.ts';
import { kernels } from '../backends/index.ts';
import { isFloat, resultType } from '../dtype.ts';
import { needsMask } from '../errors.ts';
import { broadcastShapes, type Shape } from '../shape.ts';
import { empty, type Operand, type Tensor } from '../tensor.ts';
import { stretched } from './binary.ts';
import { Calculation, contribute } from './gradient.ts';
import { jointDevice } from './joint-device.ts';

const shapeOf = (operand: Operand): Shape => (typeof operand === 'number' ? [] : operand.shape);

/** a where `mask` (bool) is true, else b; all three are broadcast. */
export function where(mask: Tensor, a: Operand, b: Operand): Tensor {
  return choose('where', mask, a, b);
}

/** `a` with `value` in the places where `mask` is true. */
export function maskedFill(a: Tensor, mask: Tensor, value: number): Tensor {
  return choose('maskedFill', mask, value, a);
}

function choose(name: string, mask: Tensor, a: Operand, b: Operand): Tensor {
  if (mask.dtype !== 'bool') throw needsMask(name, mask.dtype);
  const shape = broadcastShapes(name, mask.shape, broadcastShapes(name, shapeOf(a), shapeOf(b)));
  const dtype = resultType(a, b);
  const out = empty(dtype, shape, jointDevice(name, mask, a, b));
  const isChosen = stretched(mask, shape);
  kernels().map('where', dtype, shape, out.strided, isChosen, stretched(a, shape), stretched(b, shape));
  const toA = typeof a === 'number' ? null : a.target;
  const toB = typeof b === 'number' ? null : b.target;
  if (!isRecording(typeof a === 'number' ? out : a, typeof b === 'number' ? null : b)) return out;
  const [aShape, bShape] = [shapeOf(a), shapeOf(b)];
  return record(name, out, [toA, toB], [mask.storage], (grad) => {
    const k = new Calculation(dtype, shape, grad.memory.device);
    if (toA) contribute(toA, k, aShape, (into) => k.map('where', into, isChosen, grad.dense, 0));
    if (toB) contribute(toB, k, bShape, (into) => k.map('where', into, isChosen, 0, grad.dense));
  });
}

/** Holds every element between two numbers; either may be left out. The gradient is 0 outside. */
export function clamp(a: Tensor, low?: number | null, high?: number | null): Tensor {
  // An infinity is no integer.
  const most = isFloat(a.dtype) ? Infinity : Number.MAX_SAFE_INTEGER;
  const bounds = [low ?? -most, high ?? most] as const;
  const dtype = resultType(a, ...(isFloat(a.dtype) ? [] : bounds));
  const { shape } = a;
  const out = empty(dtype, shape, a.device);
  const values = a.strided;
  kernels().map('clamp', dtype, shape, out.strided, values, ...bounds);
  if (!isRecording(a)) return out;
  const target = a.target!;
  return record('clamp', out, [target], [a.storage], (grad) => {
    const k = new Calculation(dtype, shape, grad.memory.device);
    contribute(target, k, shape, (into) => {
      k.map('inRange', into, values, ...bounds);
      k.map('mul', into, into, grad.dense);
    });
  });
}
