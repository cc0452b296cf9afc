// A fully connected layer in one op.
import { type GradGraph, graphOf } from '../../autograd/graph.ts';
import { isRecording, record } from '../../autograd/node.ts';
import type { GradTarget } from '../../autograd/target.ts';
import { type Activation, activations, type MapOp } from '../../backends/declarations/names.ts';
import { kernels } from '../../backends/index.ts';
import type { Strided } from '../../backends/operands.ts';
import { checkOptions, optionChecks } from '../../checks/options.ts';
import { oneOf } from '../../checks/value-checks.ts';
import { scope } from '../../core/context.ts';
import { isFloat } from '../../core/dtype.ts';
import { withStrides } from '../../core/layout.ts';
import { allocate, type Storage } from '../../core/memory/storage.ts';
import { rowsOf, type Shape, withLast } from '../../core/shape.ts';
import { created, empty, type Tensor } from '../../core/tensor.ts';
import { badLinear, mixedDtypes } from '../../errors.ts';
import { differentiableMap } from '../differentiable-map.ts';
import { recast } from '../elementwise/autocast.ts';
import { add } from '../elementwise/binary.ts';
import {
  contiguous,
  needsFloat32OnCpu,
  requireFactors,
  requireFloat,
  requireOperand,
  to,
} from '../elementwise/convert.ts';
import { jointDevice } from '../joint-device.ts';
import { expand, t } from '../shape/views.ts';
import { denseMatrices, matmul, multiply, turned } from './matmul.ts';

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
  const outSize = w.shape[0]!;
  const [toX, toW, toB] = [x.target, w.target, b?.target ?? null];
  // Saves only values that are read: a layer with frozen weights keeps no input.
  const reads = saved === null ? [] : [saved];
  if (toW) reads.push(x.storage);
  if (toX) reads.push(w.storage);
  const product: Product = { toX, toW, toB, x: x.strided, xShape: x.shape, w: w.strided, wShape: w.shape };
  record('linear', out, [toX, toW, toB], reads, (grad, graph) => {
    if (graph) {
      const own = graphOf(graph);
      sendProduct(own, product, gradientBefore(own, product, activation, saved, reads));
      return;
    }
    const own =
      activation === 'none' ? null : allocate(grad.memory.dtype, rows * outSize, grad.memory.device);
    const before = own ?? grad;
    if (activation !== 'none') {
      const bias = toB ? toB.begin() : null;
      kernels().linearGrad(
        { gradBefore: before.dense, grad: grad.dense, saved: saved!.dense, gradBias: bias?.dense ?? null },
        { rows, outs: outSize, activation },
      );
      if (bias) toB!.end(bias);
    } else if (toB) sendBias(toB, grad, rows, outSize);
    sendMatrices(product, before);
    own?.release();
  });
}

/** The operands of linear, and the targets of their gradients. */
interface Product {
  readonly toX: GradTarget | null;
  readonly toW: GradTarget | null;
  readonly toB: GradTarget | null;
  readonly x: Strided;
  readonly xShape: Shape;
  readonly w: Strided;
  readonly wShape: Shape;
}

/** Sends the gradients of x · wᵀ + b. */
function sendProduct(graph: GradGraph, { toX, toW, toB, x, xShape, w, wShape }: Product, grad: Tensor): void {
  const [outSize, inSize] = wShape as readonly [number, number];
  const count = rowsOf(xShape);
  const rows = grad.reshape([count, outSize]);
  if (toB) graph.send(toB, rows.sum(0));
  if (toW) graph.send(toW, rows.t().matmul(graph.saved(x, xShape, toX).reshape([count, inSize])));
  if (toX) graph.send(toX, rows.matmul(graph.saved(w, wShape, toW)).reshape(xShape));
}

/** Returns the gradient of the values before the activation. */
function gradientBefore(
  graph: GradGraph,
  product: Product,
  activation: Activation,
  saved: Storage | null,
  reads: readonly Storage[],
): Tensor {
  if (saved === null) return graph.grad;
  const values = created(saved.retain(), graph.grad.shape);
  const slope = (op: MapOp): Tensor => differentiableMap(op, [graph.grad, values], values.dtype) as Tensor;
  if (activation === 'relu') return slope('reluGrad');
  // As without an activation, the values depend on the operands of linear.
  record('linear', values, [product.toX, product.toW, product.toB], reads, (grad, again) => {
    if (again) sendProduct(graphOf(again), product, graphOf(again).grad);
    else {
      if (product.toB) sendBias(product.toB, grad, rowsOf(product.xShape), product.wShape[0]!);
      sendMatrices(product, grad);
    }
  });
  return slope(activation === 'gelu' ? 'geluGrad' : 'geluTanhGrad');
}

/** Sends the gradient of b, whose elements correspond to the columns of the result. */
function sendBias(toB: GradTarget, grad: Storage, rows: number, outSize: number): void {
  const into = toB.begin();
  kernels().reduce('sum', [rows, outSize], withStrides(into.dense, [0, 1]), grad.dense);
  toB.end(into);
}

/** Sends the gradients of w, then of x, given the gradient of x · wᵀ. */
function sendMatrices({ toX, toW, x, xShape, w, wShape }: Product, grad: Storage): void {
  const [outSize, inSize] = wShape as readonly [number, number];
  const rows = rowsOf(xShape);
  const g = denseMatrices(grad.dense, [rows, outSize]);
  if (toW) {
    multiply(
      [],
      toW.open(),
      turned(g),
      denseMatrices(x, [rows, inSize]),
      outSize,
      inSize,
      rows,
      toW.isFilled,
    );
    toW.close();
  }
  if (toX) {
    multiply([], toX.open(), g, denseMatrices(w, wShape), rows, inSize, outSize, toX.isFilled);
    toX.close();
  }
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
  if (activation === 'none') requireFactors('linear', x, w);
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
