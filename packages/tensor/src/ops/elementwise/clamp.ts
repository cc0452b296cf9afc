// Limits elements by two bounds, each a number or a tensor.

import { isRecording, record } from '../../autograd/node.ts';
import { kernels } from '../../backends/index.ts';
import type { Input, Strided } from '../../backends/operands.ts';
import { boundsByName, noBounds, notOfBool } from '../../checks/argument-errors.ts';
import { type DType, isFloat, resultType } from '../../core/dtype.ts';
import { broadcastShapes, type Shape } from '../../core/shape.ts';
import { empty, type Operand, Tensor } from '../../core/tensor.ts';
import { Calculation, contribute, unstretched } from '../gradient.ts';
import { jointDevice } from '../joint-device.ts';
import { comparable, jointShape, stretched } from './binary.ts';
import { requireTensor } from './convert.ts';

/** The operands of the kernels, broadcast to the shape of the result. At least one bound is not null. */
interface Values {
  readonly x: Input;
  readonly low: Input | null;
  readonly high: Input | null;
}

/**
 * Limits every element to the range of two bounds, one of which may be absent; if they cross, the upper one applies.
 * Tensors are broadcast, and numbers must fit the dtype of the result. An element on a bound gets the gradient; for an
 * element beyond a bound, the bound gets it.
 */
export function clamp(a: Tensor, low?: Operand | null, high?: Operand | null): Tensor {
  requireTensor('clamp', a);
  const [least, most] = [low ?? null, high ?? null];
  if (isPlain(least) || isPlain(most)) throw boundsByName();
  if (least === null && most === null) throw noBounds();
  const dtype = typeOf(a, least, most);
  if (dtype === 'bool' && least !== null && most !== null) throw notOfBool('clamp', "where, or .to('uint8')");
  const shape = stretchedBy(stretchedBy(a.shape, least), most);
  const read = (bound: Operand | null): Input | null =>
    bound === null ? null : stretched(comparable('clamp', bound, dtype), shape);
  const values: Values = { x: stretched(a, shape), low: read(least), high: read(most) };
  const out = empty(dtype, shape, jointDevice('clamp', a, least, most));
  compute(dtype, out, values);
  const [leastTensor, mostTensor] = [tensorOrNull(least), tensorOrNull(most)];
  if (!isRecording(a, leastTensor, mostTensor)) return out;
  return recorded([a, leastTensor, mostTensor], values, out);
}

const isPlain = (bound: Operand | null): boolean =>
  bound !== null && Object.getPrototypeOf(bound) === Object.prototype;

const tensorOrNull = (bound: Operand | null): Tensor | null => (bound instanceof Tensor ? bound : null);

/** Returns resultType, faster for a float between numbers. */
function typeOf(a: Tensor, low: Operand | null, high: Operand | null): DType {
  if (isFloat(a.dtype) && !(low instanceof Tensor) && !(high instanceof Tensor)) return a.dtype;
  return resultType(...[a, low, high].filter((operand) => operand !== null));
}

function stretchedBy(shape: Shape, bound: Operand | null): Shape {
  if (bound === null || typeof bound === 'number') return shape;
  return broadcastShapes('clamp', shape, jointShape('clamp', 0, bound));
}

function compute(dtype: DType, out: Tensor, { x, low, high }: Values): void {
  if (low !== null && high !== null) kernels().map('clamp', dtype, out.shape, out.strided, x, low, high);
  else if (low !== null) kernels().map('max', dtype, out.shape, out.strided, x, low);
  else kernels().map('min', dtype, out.shape, out.strided, x, high!);
}

// A separate function, so that the variables which its closure captures are allocated only when it runs.
function recorded(inputs: readonly (Tensor | null)[], values: Values, out: Tensor): Tensor {
  const { shape, dtype } = out;
  const targets = inputs.map((input) => (input === null ? null : input.target));
  const shapes = inputs.map((input) => (input === null ? [] : input.shape));
  const saved = inputs.flatMap((input) => (input === null ? [] : [input.storage]));
  const all = [values.x, values.low, values.high];
  return record('clamp', out, targets, saved, (grad, graph) => {
    for (const [i, isReached] of [inside, belowLow, aboveHigh].entries()) {
      const target = targets[i];
      if (!target) continue;
      const k = new Calculation(dtype, shape, grad.memory.device, graph);
      if (k.graph) {
        k.graph.bind(grad.dense, k.graph.grad);
        for (const [j, value] of all.entries()) {
          if (value === null || typeof value === 'number') continue;
          const own = shapes[j]!;
          k.graph.bind(value, k.graph.saved(unstretched(value, shape, own), own, targets[j] ?? null));
        }
      }
      contribute(target, k, shapes[i]!, (into) => {
        isReached(k, into, values);
        k.map('where', into, into, grad.dense, 0);
      });
    }
  });
}

/** Writes 1 where an input gets the gradient, else 0. */
type Test = (k: Calculation, into: Strided, values: Values) => void;

const inside: Test = (k, into, { x, low, high }) => {
  if (low !== null && high !== null) k.map('inRange', into, x, low, high);
  else if (low !== null) k.map('le', into, low, x);
  else k.map('le', into, x, high!);
};

const belowLow: Test = (k, into, { x, low, high }) => {
  k.map('lt', into, x, low!);
  if (high === null) return;
  const isOrdered = k.temporary();
  k.map('lt', isOrdered, low!, high);
  k.map('mul', into, into, isOrdered);
};

const aboveHigh: Test = (k, into, { x, low, high }) => {
  k.map('lt', into, high!, x);
  if (low === null) return;
  const isCrossed = k.temporary();
  k.map('lt', isCrossed, high!, low);
  k.map('max', into, into, isCrossed);
};
