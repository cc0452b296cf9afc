// Functions of one element. Each rule says what the gradient reads and writes grad × f′ into `into`.
import { isRecording, record } from '../autograd/node.ts';
import { kernels } from '../backends/index.ts';
import type { Memory, UnaryOp } from '../kernels.ts';
import { allocate } from '../storage.ts';
import { empty, type Tensor } from '../tensor.ts';
import { dense } from './broadcast.ts';
import { requireFloat } from './convert.ts';

interface Rule {
  readonly saves: 'input' | 'output' | 'nothing';
  readonly gradient: (into: Memory, grad: Memory, saved: Memory) => void;
}

const rules: Record<UnaryOp, Rule> = {
  neg: { saves: 'nothing', gradient: (into, grad) => kernels().unary('neg', into, grad) },
  exp: { saves: 'output', gradient: (into, grad, out) => dense('mul', into, grad, out) },
  log: { saves: 'input', gradient: (into, grad, a) => dense('div', into, grad, a) },
  sqrt: {
    saves: 'output',
    gradient: (into, grad, out) => {
      dense('div', into, grad, out);
      kernels().affine(into, into, 0.5, 0);
    },
  },
  square: {
    saves: 'input',
    gradient: (into, grad, a) => {
      dense('mul', into, grad, a);
      kernels().affine(into, into, 2, 0);
    },
  },
  abs: { saves: 'input', gradient: absGradient },
  relu: { saves: 'output', gradient: (into, grad, out) => dense('reluGrad', into, grad, out) },
  sigmoid: { saves: 'output', gradient: (into, grad, out) => dense('sigmoidGrad', into, grad, out) },
  tanh: { saves: 'output', gradient: (into, grad, out) => dense('tanhGrad', into, grad, out) },
};

/** grad × sign(a), with sign(0) = 0. */
function absGradient(into: Memory, grad: Memory, a: Memory): void {
  const k = kernels();
  const zero = allocate('float32', 1);
  const isPositive = allocate('float32', a.count);
  k.fill(zero.memory, 0);
  k.binary('lt', isPositive.memory, zero.memory, a, [a.count], [0], [1]);
  k.binary('lt', into, a, zero.memory, [a.count], [1], [0]);
  dense('sub', into, isPositive.memory, into);
  dense('mul', into, into, grad);
  zero.release();
  isPositive.release();
}

function unary(op: UnaryOp, a: Tensor): Tensor {
  requireFloat(op, a);
  const out = empty('float32', a.shape);
  kernels().unary(op, out.memory, a.memory);
  if (!isRecording(a)) return out;
  const target = a.target!;
  const { saves, gradient } = rules[op];
  const saved = saves === 'input' ? a.storage : out.storage;
  return record(op, out, [target], saves === 'nothing' ? [] : [saved], (grad) => {
    const into = target.begin();
    gradient(into.memory, grad.memory, saved.memory);
    target.end(into);
  });
}

export const neg = (a: Tensor): Tensor => unary('neg', a);
export const exp = (a: Tensor): Tensor => unary('exp', a);
export const log = (a: Tensor): Tensor => unary('log', a);
export const sqrt = (a: Tensor): Tensor => unary('sqrt', a);
export const square = (a: Tensor): Tensor => unary('square', a);
/** The gradient at 0 is 0. */
export const abs = (a: Tensor): Tensor => unary('abs', a);
/** The gradient at 0 is 0. */
export const relu = (a: Tensor): Tensor => unary('relu', a);
export const sigmoid = (a: Tensor): Tensor => unary('sigmoid', a);
export const tanh = (a: Tensor): Tensor => unary('tanh', a);
