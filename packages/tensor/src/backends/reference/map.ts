// Elementwise operations, each as one expression: over numbers for floats, over bigints for integers and bool.
import type { DType } from '../../core/dtype.ts';
import { type Value, writer } from '../../core/element.ts';
import type { MapOp } from '../declarations/names.ts';
import type { Input, Strided } from '../operands.ts';
import { isInteger, offsets, readAll } from './access.ts';
import { elementary, erf } from './functions.ts';
import { floatPairs, type IntegerOp, integerPairs } from './pairs.ts';

const { abs, cos, exp, sin, sqrt } = Math;

type FloatOp = Exclude<MapOp, IntegerOp>;

const sigmoid = (x: number): number => 1 / (1 + exp(-x));
const cdf = (x: number): number => 0.5 * (1 + erf(x / Math.SQRT2));
const root = sqrt(2 / Math.PI);
// For gelu's approximation with u = root · (x + 0.044715 x³): (1 + tanh(u)) / 2, and the derivative of u.
const tanhGate = (x: number): number => (1 + Math.tanh(root * (x + 0.044715 * x ** 3))) / 2;
const tanhSlope = (x: number): number => root * (1 + 3 * 0.044715 * x * x);
const density = (x: number): number => exp((-x * x) / 2) / sqrt(2 * Math.PI);

function roundToEven(x: number): number {
  const floor = Math.floor(x);
  if (x - floor !== 0.5) return Math.round(x);
  return floor % 2 === 0 ? floor : floor + 1;
}

/** Returns IEEE 754's pow. It differs from JavaScript's in 1 to any power and −1 to an infinite one, which are 1. */
const pow = (x: number, y: number): number =>
  x === 1 || (x === -1 && Math.abs(y) === Infinity) ? 1 : x ** y;

const min = (a: number, b: number): number => Math.min(a, b);
const max = (a: number, b: number): number => Math.max(a, b);
const oneIf = (condition: boolean): number => (condition ? 1 : 0);

/** The operations on floats. Operations that exist only for integers are not included. */
export const floatOps: Record<FloatOp, (a: number, b: number, c: number) => number> = {
  neg: (x) => -x,
  abs,
  sign: (x) => oneIf(x > 0) - oneIf(x < 0),
  exp,
  log: Math.log,
  sqrt,
  rsqrt: (x) => 1 / sqrt(x),
  square: (x) => x * x,
  sin,
  cos,
  tanh: Math.tanh,
  sigmoid,
  relu: (x) => max(x, 0),
  erf,
  ...elementary,
  gelu: (x) => x * cdf(x),
  geluTanh: (x) => x * tanhGate(x),
  silu: (x) => x * sigmoid(x),
  floor: Math.floor,
  ceil: Math.ceil,
  round: roundToEven,
  trunc: Math.trunc,
  logicalNot: (x) => oneIf(x === 0),
  add: (a, b) => a + b,
  sub: (a, b) => a - b,
  mul: (a, b) => a * b,
  div: (a, b) => a / b,
  pow,
  max,
  min,
  eq: (a, b) => oneIf(a === b),
  ne: (a, b) => oneIf(a !== b),
  lt: (a, b) => oneIf(a < b),
  le: (a, b) => oneIf(a <= b),
  logicalAnd: (a, b) => oneIf(a !== 0 && b !== 0),
  logicalOr: (a, b) => oneIf(a !== 0 || b !== 0),
  logicalXor: (a, b) => oneIf((a !== 0) !== (b !== 0)),
  ...floatPairs,
  reluGrad: (grad, out) => (out <= 0 ? 0 : grad),
  sigmoidGrad: (grad, out) => grad * out * (1 - out),
  tanhGrad: (grad, out) => grad * (1 - out * out),
  geluGrad: (grad, x) => grad * (cdf(x) + x * density(x)),
  geluTanhGrad: (grad, x) => grad * (tanhGate(x) + 2 * x * tanhGate(x) * (1 - tanhGate(x)) * tanhSlope(x)),
  siluGrad: (grad, x) => grad * sigmoid(x) * (1 + x * (1 - sigmoid(x))),
  where: (c, a, b) => (c !== 0 ? a : b),
  mulAdd: (a, b, c) => a * b + c,
  clamp: (x, low, high) => min(max(x, low), high),
  inRange: (x, low, high) => oneIf(x >= low && x <= high),
};

const largest = (a: bigint, b: bigint): bigint => (a > b ? a : b);
const smallest = (a: bigint, b: bigint): bigint => (a < b ? a : b);
const bit = (condition: boolean): bigint => (condition ? 1n : 0n);

/** Returns x to the power y, modulo 2^64. A negative power of any number but 1 and −1 is 0. */
function integerPow(x: bigint, y: bigint): bigint {
  if (y < 0n) return x === 1n ? 1n : x === -1n ? (y % 2n === 0n ? 1n : -1n) : 0n;
  let result = 1n;
  for (let power = x, rest = y; rest > 0n; rest >>= 1n) {
    if (rest & 1n) result = BigInt.asIntN(64, result * power);
    power = BigInt.asIntN(64, power * power);
  }
  return result;
}

export const integerOps: Partial<Record<MapOp, (a: bigint, b: bigint, c: bigint) => bigint>> = {
  neg: (x) => -x,
  abs: (x) => (x < 0n ? -x : x),
  sign: (x) => bit(x > 0n) - bit(x < 0n),
  square: (x) => x * x,
  relu: (x) => largest(x, 0n),
  logicalNot: (x) => bit(x === 0n),
  add: (a, b) => a + b,
  sub: (a, b) => a - b,
  mul: (a, b) => a * b,
  pow: integerPow,
  max: largest,
  min: smallest,
  eq: (a, b) => bit(a === b),
  ne: (a, b) => bit(a !== b),
  lt: (a, b) => bit(a < b),
  le: (a, b) => bit(a <= b),
  logicalAnd: (a, b) => bit(a !== 0n && b !== 0n),
  logicalOr: (a, b) => bit(a !== 0n || b !== 0n),
  logicalXor: (a, b) => bit((a !== 0n) !== (b !== 0n)),
  ...integerPairs,
  reluGrad: (grad, out) => (out <= 0n ? 0n : grad),
  where: (c, a, b) => (c !== 0n ? a : b),
  mulAdd: (a, b, c) => a * b + c,
  clamp: (x, low, high) => smallest(largest(x, low), high),
  inRange: (x, low, high) => bit(x >= low && x <= high),
};

export function map(
  op: MapOp,
  compute: DType,
  shape: readonly number[],
  out: Strided,
  a: Input,
  b: Input = 0,
  c: Input = 0,
): void {
  const apply = (isInteger(compute) ? integerOps : floatOps)[op as FloatOp] as (
    a: Value,
    b: Value,
    c: Value,
  ) => Value;
  const [left, right, third] = [a, b, c].map((input) => readAll(shape, input, compute));
  const write = writer(out.memory);
  for (const [i, at] of offsets(shape, out).entries()) write(at, apply(left![i]!, right![i]!, third![i]!));
}

export function copy(shape: readonly number[], out: Strided, a: Input): void {
  const values = readAll(shape, a, typeof a === 'number' ? 'float64' : a.memory.dtype);
  const write = writer(out.memory);
  for (const [i, at] of offsets(shape, out).entries()) write(at, values[i]!);
}
