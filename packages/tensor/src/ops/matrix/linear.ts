// A fully connected layer in one op.
import { isRecording, record } from '../../autograd/node.ts';
import { type Activation, activations } from '../../backends/declarations/names.ts';
import { kernels } from '../../backends/index.ts';
import { checkOptions, optionChecks } from '../../checks/options.ts';
import { oneOf } from '../../checks/value-checks.ts';
import { scope } from '../../core/context.ts';
import { isFloat } from '../../core/dtype.ts';
import { withStrides } from '../../core/layout.ts';
import { allocate, type Storage } from '../../core/memory/storage.ts';
import { rowsOf, withLast } from '../../core/shape.ts';
import { empty, type Tensor } from '../../core/tensor.ts';
import { badLinear, mixedDtypes } from '../../errors.ts';
import { recast } from '../elementwise/autocast.ts';
import { add } from '../elementwise/binary.ts';
import {
  contiguous,
  needsFloat32OnCpu,
  requireFloat,
  requireNumbers,
  requireOperand,
  to,
} from '../elementwise/convert.ts';
import { jointDevice } from '../joint-device.ts';
import { expand, t } from '../shape/views.ts';
import { denseMatrices, matmul, matricesOf, multiply, turned } from './matmul.ts';

/** Options of linear(). */
export interface LinearOptions {
  /** Applied to the result in the same kernel. Default 'none'. */
  readonly activation?: Activation;
}

const linearOptions = optionChecks<LinearOptions>({ activation: oneOf(...activations) });

/**
 * Computes activation(x · wᵀ + b), with x [..., in], w [out, in] and b [out], [1] or null. In backward the
 * gradients of w and b are final before that of x is computed, so that DDP can send them meanwhile. Integers
 * wrap around.
 */
export function linear(x: Tensor, w: Tensor, b: Tensor | null = null, options: LinearOptions = {}): Tensor {
  checkOptions('linear', options, linearOptions);
  const { activation = 'none' } = options;
  const lowered = recast('low', [x, w, b], (...operands) =>
    linear(operands[0]!, operands[1]!, operands[2], options),
  );
  if (lowered) return lowered;
  checkLinear(x, w, b, activation);
  if (!isFloat(x.dtype)) return integerLinear(x, w, b);
  if (b !== null && b.shape[0] !== w.shape[0])
    return scope(() => linear(x, w, expand(b, [w.shape[0]!]), options));
  if (needsFloat32OnCpu(x)) return linearInFloat32(x, w, b, options);
  const [outSize, inSize] = w.shape as readonly [number, number];
  const dense = contiguous(x);
  const weights = contiguous(w);
  const bias = b && contiguous(b);
  const rows = rowsOf(x.shape);
  const out = empty(x.dtype, withLast(x.shape, outSize), jointDevice('linear', x, w, b));
  const isRecorded = isRecording(dense, weights, b);
  // The gradient of relu needs the result; that of gelu needs the values before the activation.
  const before =
    isRecorded && (activation === 'gelu' || activation === 'geluTanh')
      ? allocate(out.dtype, out.count, out.device)
      : null;
  if (out.count > 0) {
    kernels().linear(
      {
        out: out.strided,
        x: dense.strided,
        w: weights.strided,
        bias: bias?.strided ?? null,
        before: before?.dense ?? null,
      },
      { rows, outs: outSize, ins: inSize, activation },
    );
  }
  if (isRecorded) {
    const saved = activation === 'none' ? null : (before ?? out.storage);
    recordLinear(out, dense, weights, b, activation, saved, rows);
  }
  before?.release();
  if (dense !== x) dense.dispose();
  if (weights !== w) weights.dispose();
  if (bias !== b) bias?.dispose();
  return out;
}

// A separate function, so that the variables which its closure captures are allocated only when it runs.
function recordLinear(
  out: Tensor,
  x: Tensor,
  w: Tensor,
  b: Tensor | null,
  activation: Activation,
  saved: Storage | null,
  rows: number,
): void {
  const [outSize, inSize] = w.shape as readonly [number, number];
  const [toX, toW, toB] = [x.target, w.target, b?.target ?? null];
  // Only what is read: a layer with frozen weights keeps no input.
  const input = toW && denseMatrices(x.strided, [rows, inSize]);
  const weight = toX && matricesOf(w, []);
  const reads = saved === null ? [] : [saved];
  if (input) reads.push(x.storage);
  if (weight) reads.push(w.storage);
  record('linear', out, [toX, toW, toB], reads, (grad) => {
    const own =
      activation === 'none' ? null : allocate(grad.memory.dtype, rows * outSize, grad.memory.device);
    const before = own ?? grad;
    const bias = toB ? toB.begin() : null;
    if (activation !== 'none')
      kernels().linearGrad(
        { gradBefore: before.dense, grad: grad.dense, saved: saved!.dense, gradBias: bias?.dense ?? null },
        { rows, outs: outSize, activation },
      );
    else if (bias) kernels().reduce('sum', [rows, outSize], withStrides(bias.dense, [0, 1]), grad.dense);
    if (bias) toB!.end(bias);
    const g = denseMatrices(before.dense, [rows, outSize]);
    if (toW) {
      multiply([], toW.open(), turned(g), input!, outSize, inSize, rows, toW.isFilled);
      toW.close();
    }
    if (toX) {
      multiply([], toX.open(), g, weight!, rows, inSize, outSize, toX.isFilled);
      toX.close();
    }
    own?.release();
  });
}

function linearInFloat32(x: Tensor, w: Tensor, b: Tensor | null, options: LinearOptions): Tensor {
  const wide = [x, w, ...(b ? [b] : [])].map((tensor) => to(tensor, 'float32'));
  const result = linear(wide[0]!, wide[1]!, wide[2] ?? null, options);
  const out = to(result, x.dtype);
  for (const tensor of [...wide, result]) tensor.dispose();
  return out;
}

function integerLinear(x: Tensor, w: Tensor, b: Tensor | null): Tensor {
  return scope(() => {
    const products = matmul(x, t(w));
    return b ? add(products, b) : products;
  });
}

function checkLinear(x: Tensor, w: Tensor, b: Tensor | null, activation: Activation): void {
  requireOperand('linear', 'x', x);
  requireOperand('linear', 'w', w);
  if (b !== null) requireOperand('linear', 'b', b);
  if (activation === 'none') requireNumbers('linear', x);
  else requireFloat(`linear: ${activation}`, x);
  if (w.dtype !== x.dtype) throw mixedDtypes('linear', x.dtype, w.dtype);
  if (b !== null && b.dtype !== x.dtype) throw mixedDtypes('linear', x.dtype, b.dtype);
  const fits =
    w.rank === 2 &&
    x.rank > 0 &&
    x.shape[x.rank - 1] === w.shape[1] &&
    (b === null || (b.rank === 1 && (b.shape[0] === w.shape[0] || b.shape[0] === 1)));
  if (!fits) throw badLinear(x.shape, w.shape, b?.shape ?? null);
}
