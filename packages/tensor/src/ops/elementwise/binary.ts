// a op b with NumPy's broadcasting and PyTorch's type promotion. An operand may be a number. No operand is
// copied: kernels broadcast and convert while they read.

import { type GradGraph, graphOf } from '../../autograd/graph.ts';
import { isRecording, record } from '../../autograd/node.ts';
import type { GradTarget } from '../../autograd/target.ts';
import { floatMapOps, type MapOp } from '../../backends/declarations/names.ts';
import { kernels } from '../../backends/index.ts';
import type { Input, Strided } from '../../backends/operands.ts';
import { negativePower, notOfBool } from '../../checks/argument-errors.ts';
import { checkFits } from '../../checks/arguments.ts';
import { refuseOptions } from '../../checks/options.ts';
import { type DType, isFloat, resultType } from '../../core/dtype.ts';
import { rounded } from '../../core/element.ts';
import { withStrides } from '../../core/layout.ts';
import type { Storage } from '../../core/memory/storage.ts';
import { broadcastShapes, broadcastStrides, type Shape, sameShape } from '../../core/shape.ts';
import { empty, type Operand, Tensor } from '../../core/tensor.ts';
import { notATensor } from '../../errors.ts';
import { Calculation, contribute, shareReduced, unstretched } from '../gradient.ts';
import { jointDevice } from '../joint-device.ts';
import { recast } from './autocast.ts';
import { requireTensor } from './convert.ts';

/** Writes the gradient of one operand, in the shape of the output. 'same': it is the gradient of the output. */
type Contribution = 'same' | ((k: Calculation, into: Strided, grad: Strided, v: Values) => void);
interface Values {
  readonly a: Input;
  readonly b: Input;
  readonly out: Strided;
}
interface Rule {
  readonly toA: Contribution;
  readonly toB: Contribution;
  /** Values that each contribution reads. */
  readonly reads: { readonly toA: readonly (keyof Values)[]; readonly toB: readonly (keyof Values)[] };
}

const reading = (toA: readonly (keyof Values)[], toB: readonly (keyof Values)[]): Rule['reads'] => ({
  toA,
  toB,
});

/**
 * Makes the gradient of one operand of an extreme: 0 where `loses` writes 1, half of it where both operands are equal,
 * else all of it, also where one is NaN.
 */
const unless = (loses: (k: Calculation, into: Strided, v: Values) => void): Contribution => {
  return (k, into, grad, v) => {
    const isLoser = k.temporary();
    loses(k, isLoser, v);
    k.map('eq', into, v.a, v.b);
    k.map('mulAdd', into, into, -0.5, 1);
    k.map('mul', into, into, grad);
    k.map('where', into, isLoser, 0, into);
  };
};
const unlessAIsLess = unless((k, into, { a, b }) => k.map('lt', into, a, b));
const unlessBIsLess = unless((k, into, { a, b }) => k.map('lt', into, b, a));

const rules = {
  add: { toA: 'same', toB: 'same', reads: reading([], []) },
  sub: { toA: 'same', toB: (k, into, grad) => k.map('neg', into, grad), reads: reading([], []) },
  mul: {
    toA: (k, into, grad, { b }) => k.map('mul', into, grad, b),
    toB: (k, into, grad, { a }) => k.map('mul', into, grad, a),
    reads: reading(['b'], ['a']),
  },
  div: {
    toA: (k, into, grad, { b }) => k.map('div', into, grad, b),
    // −grad × out ÷ b
    toB: (k, into, grad, { b, out }) => {
      k.map('mul', into, grad, out);
      k.map('div', into, into, b);
      k.map('neg', into, into);
    },
    reads: reading(['b'], ['b', 'out']),
  },
  pow: {
    // grad × b × a^(b − 1), and 0 where b is 0, also for a gradient that is NaN
    toA: (k, into, grad, { a, b }) => {
      const exponent = typeof b === 'number' ? b - 1 : k.temporary();
      if (typeof exponent !== 'number') k.map('sub', exponent, b, 1);
      const root = rootOf(exponent, k.dtype);
      if (root === null) k.map('pow', into, a, exponent);
      else k.map(root, into, a);
      k.map('mul', into, into, b);
      k.map('mul', into, into, grad);
      k.map('where', into, b, into, 0);
    },
    // grad × out × log a, and 0 where a is 0 and b ≥ 0
    toB: (k, into, grad, { a, b, out }) => {
      const isFlat = k.temporary();
      k.map('eq', isFlat, a, 0);
      k.map('le', into, 0, b);
      k.map('mul', isFlat, isFlat, into);
      k.map('log', into, a);
      k.map('mul', into, into, out);
      k.map('where', into, isFlat, 0, into);
      k.map('mul', into, into, grad);
    },
    reads: reading(['a', 'b'], ['a', 'b', 'out']),
  },
  max: { toA: unlessAIsLess, toB: unlessBIsLess, reads: reading(['a', 'b'], ['a', 'b']) },
  min: { toA: unlessBIsLess, toB: unlessAIsLess, reads: reading(['a', 'b'], ['a', 'b']) },
} satisfies Partial<Record<MapOp, Rule>>;

const isTensor = (operand: Operand): operand is Tensor => typeof operand !== 'number';
export const shapeOf = (operand: Operand): Shape => (isTensor(operand) ? operand.shape : []);

/** Returns an operand broadcast to `shape`, for a kernel. */
export function stretched(operand: Operand, shape: Shape): Input {
  if (!isTensor(operand)) return operand;
  const { strided } = operand;
  if (sameShape(operand.shape, shape)) return strided;
  return withStrides(strided, broadcastStrides(operand.shape, strided.strides, shape));
}

/** Returns the broadcast shape of both operands. Throws unless each is a tensor or a number. */
export function jointShape(name: string, a: Operand, b: Operand): Shape {
  if (typeof a !== 'number' && !(a instanceof Tensor)) throw notATensor(name, a);
  if (typeof b !== 'number' && !(b instanceof Tensor)) throw notATensor(name, b);
  if (!isTensor(a)) return shapeOf(b);
  if (!isTensor(b) || sameShape(a.shape, b.shape)) return a.shape;
  return broadcastShapes(name, a.shape, b.shape);
}

/** Returns resultType, faster for a float and a number. */
function jointType(a: Operand, b: Operand): DType {
  const tensor = isTensor(a) ? a : b;
  const isBesideNumber = !isTensor(a) || !isTensor(b);
  return isBesideNumber && isTensor(tensor) && isFloat(tensor.dtype) ? tensor.dtype : resultType(a, b);
}

/** Returns the dtype that an op computes in: the joint dtype of the operands, or float32 if the op needs a float. */
export function computingType(op: MapOp, a: Operand, b: Operand): DType {
  const dtype = isTensor(a) && isTensor(b) && a.dtype === b.dtype ? a.dtype : jointType(a, b);
  return !isFloat(dtype) && floatMapOps.has(op) ? 'float32' : dtype;
}

/**
 * Throws for arithmetic that PyTorch refuses: differences of bool, powers of bool, powers that integers do not have,
 * and exponents that do not fit the dtype.
 */
export function checkArithmetic(name: string, op: MapOp, a: Operand, b: Operand, dtype: DType): void {
  if (op === 'sub' && (isBool(a) || isBool(b))) throw notOfBool(name, "logicalXor, or .to('int32')");
  if (op !== 'pow') return;
  if (dtype === 'bool') throw notOfBool(name, "logicalOr, or .to('int32')");
  if (typeof b !== 'number') return;
  if (!isFloat(dtype) && b < 0) throw negativePower(b);
  if (isTensor(a) && a.dtype === dtype && dtype !== 'float32') checkFits(name, b, dtype);
}

const isBool = (operand: Operand): boolean => isTensor(operand) && operand.dtype === 'bool';

/** Returns an operand to compare tensors of `dtype` with: a number must fit, and is rounded to `dtype`. */
export function comparable(name: string, operand: Operand, dtype: DType): Operand {
  if (isTensor(operand)) return operand;
  checkFits(name, operand, dtype);
  return rounded(dtype, operand);
}

/**
 * Returns the operation that computes powers of ½ or −½ as roots, null for other exponents. Roots differ from powers at
 * −∞ and −0. PyTorch takes roots too, except in float16.
 */
function rootOf(exponent: Operand | Input, dtype: DType): MapOp | null {
  if (dtype === 'float16') return null;
  if (exponent === 0.5) return 'sqrt';
  return exponent === -0.5 ? 'rsqrt' : null;
}

function binary(name: string, op: keyof typeof rules, a: Operand, b: Operand): Tensor {
  const shape = jointShape(name, a, b);
  const dtype = computingType(op, a, b);
  if (op === 'sub' || op === 'pow') checkArithmetic(name, op, a, b, dtype);
  const out = empty(dtype, shape, jointDevice(name, a, b));
  const x = stretched(a, shape);
  const y = stretched(b, shape);
  const root = op === 'pow' && isFloat(dtype) ? rootOf(b, dtype) : null;
  if (root === null) kernels().map(op, dtype, shape, out.strided, x, y);
  else kernels().map(root, dtype, shape, out.strided, x);
  const isRecorded = isRecording(isTensor(a) ? a : out, isTensor(b) ? b : null);
  return isRecorded ? recorded(name, op, a, b, { a: x, b: y, out: out.strided }, out) : out;
}

// A separate function, so that the variables which its closure captures are allocated only when it runs.
function recorded(
  name: string,
  op: keyof typeof rules,
  a: Operand,
  b: Operand,
  all: Values,
  out: Tensor,
): Tensor {
  const { shape, dtype } = out;
  const left = isTensor(a) ? a : null;
  const right = isTensor(b) ? b : null;
  const { toA, toB, reads }: Rule = rules[op];
  const leftTarget = left === null ? null : left.target;
  const rightTarget = right === null ? null : right.target;
  // Saves only values that are read for an operand that requires a gradient: the program may change or drop the others.
  const isRead = (name: keyof Values): boolean =>
    (leftTarget !== null && reads.toA.includes(name)) || (rightTarget !== null && reads.toB.includes(name));
  const saved: Storage[] = [];
  const [readsA, readsB] = [isRead('a'), isRead('b')];
  if (readsA && left !== null) saved.push(left.storage);
  if (readsB && right !== null) saved.push(right.storage);
  if (isRead('out')) saved.push(out.storage);
  const values: Values = { a: readsA ? all.a : 0, b: readsB ? all.b : 0, out: all.out };
  const leftShape = shapeOf(a);
  const rightShape = shapeOf(b);
  const send = (
    contribution: Contribution,
    target: GradTarget,
    inputShape: Shape,
    grad: Storage,
    graph: object | null,
  ): void => {
    if (contribution === 'same') {
      if (graph) graphOf(graph).send(target, graphOf(graph).grad, inputShape);
      else shareReduced(target, grad, shape, inputShape);
      return;
    }
    const k = new Calculation(dtype, shape, grad.memory.device, graph);
    if (k.graph) {
      k.graph.bind(grad.dense, k.graph.grad);
      bindOperand(k.graph, values.a, shape, leftShape, leftTarget);
      bindOperand(k.graph, values.b, shape, rightShape, rightTarget);
      if (isRead('out')) k.graph.bind(values.out, k.graph.result(values.out, shape));
    }
    contribute(target, k, inputShape, (into) => contribution(k, into, grad.dense, values));
  };
  return record(name, out, [leftTarget, rightTarget], saved, (grad, graph) => {
    if (leftTarget !== null) send(toA, leftTarget, leftShape, grad, graph);
    if (rightTarget !== null) send(toB, rightTarget, rightShape, grad, graph);
  });
}

/** Lets rules read an operand, which was broadcast to `shape`, as a tensor. */
export function bindOperand(
  graph: GradGraph,
  value: Input,
  shape: Shape,
  own: Shape,
  target: GradTarget | null,
): void {
  if (typeof value !== 'number') graph.bind(value, graph.saved(unstretched(value, shape, own), own, target));
}

type Binary = (a: Operand, b: Operand) => Tensor;

/** Makes a public operation. A third argument is not part of its type; it is checked in order to refuse options. */
const plain =
  (name: string, op: keyof typeof rules): Binary =>
  (a: Operand, b: Operand, extra?: unknown): Tensor => {
    if (extra !== undefined) refuseOptions(name, extra);
    return binary(name, op, a, b);
  };

/** Adds elementwise, with broadcasting. */
export const add = plain('add', 'add');
/** Subtracts elementwise, with broadcasting. */
export const sub = plain('sub', 'sub');
/** Multiplies elementwise, with broadcasting. */
export const mul = plain('mul', 'mul');
/** Divides; integers become float32. */
export const div = plain('div', 'div');

function extreme(name: string, op: 'max' | 'min', a: Operand, b: Operand): Tensor {
  jointShape(name, a, b);
  const dtype = computingType(op, a, b);
  return binary(name, op, comparable(name, a, dtype), comparable(name, b, dtype));
}

/**
 * Returns the larger element of both; NaN where one is NaN. Equal elements share the gradient. A number must fit the
 * dtype.
 */
export const maximum: Binary = (a: Operand, b: Operand, extra?: unknown): Tensor => {
  if (extra !== undefined) refuseOptions('maximum', extra);
  return extreme('maximum', 'max', a, b);
};
/**
 * Returns the smaller element of both; NaN where one is NaN. Equal elements share the gradient. A number must fit the
 * dtype.
 */
export const minimum: Binary = (a: Operand, b: Operand, extra?: unknown): Tensor => {
  if (extra !== undefined) refuseOptions('minimum', extra);
  return extreme('minimum', 'min', a, b);
};
/**
 * Raises a to the power of b. Integers with a negative number as power throw; negative elements of a tensor of powers
 * give 1 or −1 for 1 and −1, and 0 for other integers, as in PyTorch.
 */
export const pow: Binary = (a: Operand, b: Operand, extra?: unknown): Tensor => {
  if (extra !== undefined) refuseOptions('pow', extra);
  const tensors = [isTensor(a) ? a : null, isTensor(b) ? b : null] as const;
  const raised = recast('float32', tensors, (x, y) => binary('pow', 'pow', x ?? a, y ?? b));
  return raised ?? binary('pow', 'pow', a, b);
};

/** Computes a comparison or a logical operation: bool, without a gradient. */
function test(name: string, op: MapOp, a: Operand, b: Operand): Tensor {
  const shape = jointShape(name, a, b);
  const out = empty('bool', shape, jointDevice(name, a, b));
  const dtype = computingType(op, a, b);
  const x = isTensor(a) ? stretched(a, shape) : rounded(dtype, a);
  const y = isTensor(b) ? stretched(b, shape) : rounded(dtype, b);
  kernels().map(op, dtype, shape, out.strided, x, y);
  return out;
}

/** Compares elementwise: true where a = b. Broadcasts; returns bools. */
export const eq = (a: Operand, b: Operand): Tensor => test('eq', 'eq', a, b);
/** Compares elementwise: true where a ≠ b. Broadcasts; returns bools. */
export const ne = (a: Operand, b: Operand): Tensor => test('ne', 'ne', a, b);
/** Compares elementwise: true where a < b. Broadcasts; returns bools. */
export const lt = (a: Operand, b: Operand): Tensor => test('lt', 'lt', a, b);
/** Compares elementwise: true where a ≤ b. Broadcasts; returns bools. */
export const le = (a: Operand, b: Operand): Tensor => test('le', 'le', a, b);
/** Compares elementwise: true where a > b. Broadcasts; returns bools. */
export const gt = (a: Operand, b: Operand): Tensor => test('gt', 'lt', b, a);
/** Compares elementwise: true where a ≥ b. Broadcasts; returns bools. */
export const ge = (a: Operand, b: Operand): Tensor => test('ge', 'le', b, a);
/** Returns bools: true where both are not 0. Broadcasts. */
export const logicalAnd = (a: Operand, b: Operand): Tensor => test('logicalAnd', 'logicalAnd', a, b);
/** Returns bools: true where one or both are not 0. Broadcasts. */
export const logicalOr = (a: Operand, b: Operand): Tensor => test('logicalOr', 'logicalOr', a, b);
/** Returns bools: true where exactly one is not 0. Broadcasts. */
export const logicalXor = (a: Operand, b: Operand): Tensor => test('logicalXor', 'logicalXor', a, b);
/** Returns true where a is 0. */
export function logicalNot(a: Tensor): Tensor {
  requireTensor('logicalNot', a);
  const out = empty('bool', a.shape, a.device);
  kernels().map('logicalNot', a.dtype, a.shape, out.strided, a.strided);
  return out;
}
