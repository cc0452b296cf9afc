// The elementwise kernels as functions of tensors that have a gradient: with these, the rules of elementwise gradients
// are differentiated, so that each rule is written once.
import type { MapOp } from '../backends/declarations/names.ts';
import { full } from '../core/creation.ts';
import type { DType } from '../core/dtype.ts';
import { type Operand, Tensor } from '../core/tensor.ts';
import * as binary from './elementwise/binary.ts';
import { where } from './elementwise/choose.ts';
import { clamp } from './elementwise/clamp.ts';
import { floorDivide, logaddexp, xlogy } from './elementwise/functions/pairs.ts';
import * as unary from './elementwise/unary.ts';

type Numbers = (...operands: Operand[]) => Tensor;

/** The density of the normal distribution. */
const density = (x: Tensor): Tensor =>
  x
    .square()
    .mul(-0.5)
    .exp()
    .mul(1 / Math.sqrt(2 * Math.PI));
const cdf = (x: Tensor): Tensor => x.mul(Math.SQRT1_2).erf().add(1).mul(0.5);

/** The derivative of the approximate gelu: with p = (1 + tanh u) ÷ 2 it is p + 2 x p (1 − p) u′. */
function tanhGeluSlope(x: Tensor): Tensor {
  const root = Math.sqrt(2 / Math.PI);
  const inner = x.add(x.pow(3).mul(0.044715)).mul(root);
  const slope = x
    .square()
    .mul(3 * 0.044715)
    .add(1)
    .mul(root);
  const gate = inner.mul(2).sigmoid();
  const bend = gate.mul(gate.neg().add(1));
  return gate.add(x.mul(bend).mul(slope).mul(2));
}

const detached = (operand: Operand): Operand => (operand instanceof Tensor ? operand.detach() : operand);

const asMask = (operand: Operand): Operand =>
  operand instanceof Tensor && operand.dtype !== 'bool' ? binary.ne(operand, 0) : operand;

/** Functions whose name or arguments differ from those of the operation. */
const others: Partial<Record<MapOp, (...operands: never[]) => Tensor>> = {
  max: binary.maximum,
  min: binary.minimum,
  geluTanh: (x: Tensor) => unary.gelu(x, { approximate: 'tanh' }),
  clamp,
  where: (mask: Operand, a: Operand, b: Operand) =>
    typeof mask === 'number' ? binary.add(mask === 0 ? b : a, 0) : where(asMask(mask) as Tensor, a, b),
  mulAdd: (a: Operand, b: Operand, c: Operand) => binary.add(binary.mul(a, b), c),
  inRange: (x: Operand, low: Operand, high: Operand) =>
    binary.logicalAnd(binary.le(low, x), binary.le(x, high)),
  xlogy,
  logAddExp: logaddexp,
  // The gradients of both are 0, also where the operand has an infinite gradient.
  trunc: (a: Operand) => unary.trunc(detached(a) as Tensor),
  floorDiv: (a: Operand, b: Operand) => floorDivide(detached(a), detached(b)),
  reluGrad: (grad: Tensor, out: Tensor) => where(binary.le(out, 0), 0, grad),
  sigmoidGrad: (grad: Tensor, out: Tensor) => grad.mul(out).mul(out.neg().add(1)),
  tanhGrad: (grad: Tensor, out: Tensor) => grad.mul(out.square().neg().add(1)),
  geluGrad: (grad: Tensor, x: Tensor) => grad.mul(cdf(x).add(x.mul(density(x)))),
  geluTanhGrad: (grad: Tensor, x: Tensor) => grad.mul(tanhGeluSlope(x)),
  siluGrad: (grad: Tensor, x: Tensor) => {
    const gate = x.sigmoid();
    return grad.mul(gate).mul(x.mul(gate.neg().add(1)).add(1));
  },
};

const functions = { ...unary, ...binary, ...others } as unknown as Readonly<
  Record<MapOp, Numbers | undefined>
>;

/**
 * Computes an elementwise operation by functions that have a gradient. Returns a tensor of `dtype`, or a number if all
 * operands are numbers.
 */
export function differentiableMap(op: MapOp, operands: readonly Operand[], dtype: DType): Operand {
  const fn = functions[op];
  if (fn === undefined) throw new Error(`the elementwise operation ${op} has no differentiable function`);
  // The kernels compute in the dtype of the gradient.
  const typed = operands.map((a) => (a instanceof Tensor ? a.to(dtype) : a));
  if (typed.some((operand) => operand instanceof Tensor)) return fn(...typed).to(dtype);
  return fn(...typed.map((value) => full([], value as number, { dtype: 'float64' }))).item();
}
