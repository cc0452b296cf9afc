// Functions of one element. Each rule says what the gradient reads, and writes grad × f′ into `into`.
import { isRecording, record } from '../autograd/node.ts';
import { kernels } from '../backends/index.ts';
import { isFloat } from '../dtype.ts';
import { badOption } from '../errors.ts';
import { floatMapOps, type MapOp, type Strided } from '../kernels.ts';
import { empty, type Tensor } from '../tensor.ts';
import { recast } from './autocast.ts';
import { Calculation, contribute } from './gradient.ts';

interface Rule {
  readonly saves: 'input' | 'output' | 'nothing';
  readonly gradient: (k: Calculation, into: Strided, grad: Strided, saved: Strided) => void;
}

/** grad × f′, where one kernel does it all, from the input or the output. */
const fused = (saves: 'input' | 'output', op: MapOp): Rule => ({
  saves,
  gradient: (k, into, grad, saved) => k.map(op, into, grad, saved),
});

/** Steps, and jumps between them: the gradient is 0 where there is one. */
const flat: Rule = { saves: 'nothing', gradient: (k, into) => kernels().copy(k.shape, into, 0) };

/** grad × factor × g(x) for a function g that is a kernel. */
const scaled = (op: MapOp, factor: number): Rule => ({
  saves: 'input',
  gradient: (k, into, grad, x) => {
    k.map(op, into, x);
    k.map('mul', into, into, grad);
    if (factor !== 1) k.map('mul', into, into, factor);
  },
});

const rules = {
  neg: { saves: 'nothing', gradient: (k, into, grad) => k.map('neg', into, grad) },
  abs: scaled('sign', 1),
  sign: flat,
  exp: fused('output', 'mul'),
  log: fused('input', 'div'),
  sqrt: {
    saves: 'output',
    gradient: (k, into, grad, out) => {
      k.map('div', into, grad, out);
      k.map('mul', into, into, 0.5);
    },
  },
  rsqrt: {
    saves: 'output',
    gradient: (k, into, grad, out) => {
      k.map('square', into, out);
      k.map('mul', into, into, out);
      k.map('mul', into, into, grad);
      k.map('mul', into, into, -0.5);
    },
  },
  square: {
    saves: 'input',
    gradient: (k, into, grad, x) => {
      k.map('mul', into, grad, x);
      k.map('mul', into, into, 2);
    },
  },
  sin: scaled('cos', 1),
  cos: scaled('sin', -1),
  tanh: fused('output', 'tanhGrad'),
  sigmoid: fused('output', 'sigmoidGrad'),
  relu: fused('output', 'reluGrad'),
  erf: {
    saves: 'input',
    gradient: (k, into, grad, x) => {
      k.map('square', into, x);
      k.map('neg', into, into);
      k.map('exp', into, into);
      k.map('mul', into, into, 2 / Math.sqrt(Math.PI));
      k.map('mul', into, into, grad);
    },
  },
  gelu: fused('input', 'geluGrad'),
  geluTanh: fused('input', 'geluTanhGrad'),
  silu: fused('input', 'siluGrad'),
  floor: flat,
  ceil: flat,
  round: flat,
  trunc: flat,
} satisfies Partial<Record<MapOp, Rule>>;

/** On integers and bool, functions that are defined on floats alone compute in float32. */
function unary(op: keyof typeof rules, a: Tensor): Tensor {
  const dtype = !isFloat(a.dtype) && floatMapOps.has(op) ? 'float32' : a.dtype;
  const out = empty(dtype, a.shape, a.device);
  kernels().map(op, dtype, a.shape, out.strided, a.strided);
  return isRecording(a) ? recorded(op, a, out) : out;
}

// A function of its own: what its closure captures is then only allocated when it runs.
function recorded(op: keyof typeof rules, a: Tensor, out: Tensor): Tensor {
  const target = a.target!;
  const { dtype } = out;
  const { saves, gradient }: Rule = rules[op];
  const saved = saves === 'input' ? a : out;
  const { shape } = a;
  const values = saved.strided;
  return record(op, out, [target], saves === 'nothing' ? [] : [saved.storage], (grad) => {
    const k = new Calculation(dtype, shape, grad.memory.device);
    contribute(target, k, shape, (into) => gradient(k, into, grad.dense, values));
  });
}

export interface GeluOptions {
  /** Default 'none'. */
  readonly approximate?: 'none' | 'tanh';
}
export function isTanhGelu(op: string, { approximate = 'none' }: GeluOptions): boolean {
  if (approximate !== 'none' && approximate !== 'tanh')
    throw badOption(`${op}: approximate`, "'none' or 'tanh'", approximate);
  return approximate === 'tanh';
}

/** A function whose result may leave the range of float16. */
const raised = (op: keyof typeof rules, a: Tensor): Tensor =>
  recast('float32', [a], (wide) => unary(op, wide!)) ?? unary(op, a);

export const neg = (a: Tensor): Tensor => unary('neg', a);
/** The gradient at 0 is 0. */
export const abs = (a: Tensor): Tensor => unary('abs', a);
export const sign = (a: Tensor): Tensor => unary('sign', a);
export const exp = (a: Tensor): Tensor => raised('exp', a);
export const log = (a: Tensor): Tensor => raised('log', a);
export const sqrt = (a: Tensor): Tensor => unary('sqrt', a);
/** 1 / √a. */
export const rsqrt = (a: Tensor): Tensor => raised('rsqrt', a);
export const square = (a: Tensor): Tensor => unary('square', a);
export const sin = (a: Tensor): Tensor => unary('sin', a);
export const cos = (a: Tensor): Tensor => unary('cos', a);
export const tanh = (a: Tensor): Tensor => unary('tanh', a);
export const sigmoid = (a: Tensor): Tensor => unary('sigmoid', a);
/** The gradient at 0 is 0. */
export const relu = (a: Tensor): Tensor => unary('relu', a);
export const erf = (a: Tensor): Tensor => unary('erf', a);
/** a × Φ(a), with the exact distribution function, or with that approximated by a tanh (as GPT-2 has it). */
export function gelu(a: Tensor, options: GeluOptions = {}): Tensor {
  return unary(isTanhGelu('gelu', options) ? 'geluTanh' : 'gelu', a);
}
/** a × sigmoid(a). */
export const silu = (a: Tensor): Tensor => unary('silu', a);
export const floor = (a: Tensor): Tensor => unary('floor', a);
export const ceil = (a: Tensor): Tensor => unary('ceil', a);
/** To the nearest integer, halves to the even one. */
export const round = (a: Tensor): Tensor => unary('round', a);
/** Towards zero. */
export const trunc = (a: Tensor): Tensor => unary('trunc', a);
