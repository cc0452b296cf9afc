// a op b with NumPy's broadcasting. An operand may be a number.
import { isRecording, record } from '../autograd/node.ts';
import { kernels } from '../backends/index.ts';
import type { Operand, Tensor } from '../tensor.ts';
import { beginReduced, broadcast, endReduced, shareReduced, stretched } from './broadcast.ts';
import { promoted } from './convert.ts';

const isReady = (a: Operand, b: Operand): boolean =>
  typeof a !== 'number' && typeof b !== 'number' && a.dtype === b.dtype;

export function add(a: Operand, b: Operand): Tensor {
  return isReady(a, b) ? addTensors(a as Tensor, b as Tensor) : promoted(a, b, null, addTensors);
}

function addTensors(a: Tensor, b: Tensor): Tensor {
  const out = broadcast('add', 'add', a, b);
  if (!isRecording(a, b)) return out;
  const { target: toA, shape: aShape } = a;
  const { target: toB, shape: bShape } = b;
  const { shape } = out;
  return record('add', out, [toA, toB], [], (grad) => {
    if (toA) shareReduced(toA, grad, shape, aShape);
    if (toB) shareReduced(toB, grad, shape, bShape);
  });
}

export function sub(a: Operand, b: Operand): Tensor {
  return isReady(a, b) ? subTensors(a as Tensor, b as Tensor) : promoted(a, b, null, subTensors);
}

function subTensors(a: Tensor, b: Tensor): Tensor {
  const out = broadcast('sub', 'sub', a, b);
  if (!isRecording(a, b)) return out;
  const { target: toA, shape: aShape } = a;
  const { target: toB, shape: bShape } = b;
  const { shape } = out;
  return record('sub', out, [toA, toB], [], (grad) => {
    if (toA) shareReduced(toA, grad, shape, aShape);
    if (toB === null) return;
    const negative = beginReduced(toB, shape, bShape);
    kernels().unary('neg', negative.memory, grad.memory);
    endReduced(toB, negative, shape, bShape);
  });
}

export function mul(a: Operand, b: Operand): Tensor {
  return isReady(a, b) ? mulTensors(a as Tensor, b as Tensor) : promoted(a, b, null, mulTensors);
}

function mulTensors(a: Tensor, b: Tensor): Tensor {
  const out = broadcast('mul', 'mul', a, b);
  if (!isRecording(a, b)) return out;
  const { target: toA, shape: aShape } = a;
  const { target: toB, shape: bShape } = b;
  const { shape } = out;
  const x = a.memory;
  const y = b.memory;
  return record('mul', out, [toA, toB], [a.storage, b.storage], (grad) => {
    if (toA) {
      const product = beginReduced(toA, shape, aShape);
      stretched('mul', product.memory, shape, grad.memory, shape, y, bShape);
      endReduced(toA, product, shape, aShape);
    }
    if (toB) {
      const product = beginReduced(toB, shape, bShape);
      stretched('mul', product.memory, shape, grad.memory, shape, x, aShape);
      endReduced(toB, product, shape, bShape);
    }
  });
}

/** True division: integers become float32. */
export function div(a: Operand, b: Operand): Tensor {
  const areFloats = isReady(a, b) && (a as Tensor).dtype === 'float32';
  return areFloats ? divTensors(a as Tensor, b as Tensor) : promoted(a, b, 'float32', divTensors);
}

function divTensors(a: Tensor, b: Tensor): Tensor {
  const out = broadcast('div', 'div', a, b);
  if (!isRecording(a, b)) return out;
  const { target: toA, shape: aShape } = a;
  const { target: toB, shape: bShape } = b;
  const { shape } = out;
  const quotient = out.memory;
  const divisor = b.memory;
  return record('div', out, [toA, toB], [out.storage, b.storage], (grad) => {
    if (toA) {
      const share = beginReduced(toA, shape, aShape);
      stretched('div', share.memory, shape, grad.memory, shape, divisor, bShape);
      endReduced(toA, share, shape, aShape);
    }
    if (toB) {
      // −grad × out ÷ b
      const share = beginReduced(toB, shape, bShape);
      stretched('mul', share.memory, shape, grad.memory, shape, quotient, shape);
      stretched('div', share.memory, shape, share.memory, shape, divisor, bShape);
      kernels().unary('neg', share.memory, share.memory);
      endReduced(toB, share, shape, bShape);
    }
  });
}

/** 1 where a equals b, else 0, in the dtype of the operands. No gradient. */
export function eq(a: Operand, b: Operand): Tensor {
  return promoted(a, b, null, (x, y) => broadcast('eq', 'eq', x, y));
}

/** 1 where a < b, else 0, in the dtype of the operands. No gradient. */
export function lt(a: Operand, b: Operand): Tensor {
  return promoted(a, b, null, (x, y) => broadcast('lt', 'lt', x, y));
}

/** 1 where a > b, else 0, in the dtype of the operands. No gradient. */
export function gt(a: Operand, b: Operand): Tensor {
  return promoted(a, b, null, (x, y) => broadcast('gt', 'lt', y, x));
}
