// Layer and root-mean-square normalisation over the last dimensions, in one kernel forward and one backward.

import { graphOf } from '../../autograd/graph.ts';
import { isRecording, record } from '../../autograd/node.ts';
import { kernels } from '../../backends/index.ts';
import { checkList } from '../../checks/arguments.ts';
import { checkOptions, optionChecks } from '../../checks/options.ts';
import { nonNegative, tensorOrNull } from '../../checks/value-checks.ts';
import { scope } from '../../core/context.ts';
import { type DType, isHalf } from '../../core/dtype.ts';
import { allocate } from '../../core/memory/storage.ts';
import { countOf, type Shape, sameShape } from '../../core/shape.ts';
import { empty, type Tensor } from '../../core/tensor.ts';
import { badNormShape, differentShapes, mixedDtypes } from '../../errors.ts';
import { recast } from '../elementwise/autocast.ts';
import { mul } from '../elementwise/binary.ts';
import {
  contiguous,
  needsFloat32OnCpu,
  requireFloat,
  requireOperand,
  requireTensor,
  to,
} from '../elementwise/convert.ts';
import { jointDevice } from '../joint-device.ts';

/** Options of rmsNorm(). */
export interface RmsNormOptions {
  /** Scales the result; of the normalised shape. */
  readonly weight?: Tensor | null;
  /** Added to the mean square. Default: the distance from 1 to the next number of the computing dtype. */
  readonly eps?: number;
}

/** Options of layerNorm(). */
export interface LayerNormOptions {
  /** Scales the result; of the normalised shape. */
  readonly weight?: Tensor | null;
  /** Added to the result; of the normalised shape. */
  readonly bias?: Tensor | null;
  /** Added to the variance. Default 1e-5. */
  readonly eps?: number;
}

const rmsNormOptions = optionChecks<RmsNormOptions>({ weight: tensorOrNull, eps: nonNegative });
const layerNormOptions = optionChecks<LayerNormOptions>({
  weight: tensorOrNull,
  bias: tensorOrNull,
  eps: nonNegative,
});

interface Call {
  readonly name: string;
  readonly shape: Shape;
  readonly weight: Tensor | null;
  readonly bias: Tensor | null;
  readonly eps: number;
  readonly hasMean: boolean;
}

function check({ name, shape, weight, bias }: Call, x: Tensor, addend: Tensor | null): void {
  requireFloat(name, x);
  checkList(name, 'the shape', shape);
  const fits = shape.length > 0 && sameShape(x.shape.slice(-shape.length), shape);
  if (!fits) throw badNormShape(name, x.shape, shape);
  if (addend) {
    if (!sameShape(addend.shape, x.shape)) throw differentShapes(name, x.shape, addend.shape);
    if (addend.dtype !== x.dtype) throw mixedDtypes(name, x.dtype, addend.dtype);
  }
  if (weight && bias && weight.dtype !== bias.dtype) throw mixedDtypes(name, weight.dtype, bias.dtype);
  for (const tensor of [weight, bias]) {
    if (tensor === null) continue;
    if (!sameShape(tensor.shape, shape)) throw differentShapes(name, shape, tensor.shape);
    // As in PyTorch, inputs of half precision may have parameters in float32.
    const isWider = isHalf(x.dtype) && tensor.dtype === 'float32';
    if (tensor.dtype !== x.dtype && !isWider) throw mixedDtypes(name, x.dtype, tensor.dtype);
  }
}

interface Normed {
  readonly out: Tensor;
  /** x + addend. Without addend, x itself or its dense copy. */
  readonly sum: Tensor;
}

function normalised(call: Call, x: Tensor, addend: Tensor | null): Normed {
  check(call, x, addend);
  const { weight, bias } = call;
  const isMixed = [weight, bias].some((tensor) => tensor !== null && tensor.dtype !== x.dtype);
  return isMixed || needsFloat32OnCpu(x) ? inFloat32(call, x, addend) : computed(call, x, addend);
}

function inFloat32(call: Call, x: Tensor, addend: Tensor | null): Normed {
  const wide = (a: Tensor | null): Tensor | null => a && to(a, 'float32');
  const [input, other, weight, bias] = [x, addend, call.weight, call.bias].map(wide);
  const result = computed({ ...call, weight: weight!, bias: bias! }, input!, other!);
  const out = to(result.out, x.dtype);
  const sum = addend ? to(result.sum, x.dtype) : x;
  const originals = [x, addend, call.weight, call.bias];
  for (const tensor of new Set([input, other, weight, bias, result.out, result.sum])) {
    if (tensor && !originals.includes(tensor)) tensor.dispose();
  }
  return { out, sum };
}

/** Records `sum`, which a kernel has computed, as x + addend. */
function recordSum(sum: Tensor, x: Tensor, addend: Tensor): void {
  if (!isRecording(x, addend)) return;
  const [toX, toAddend] = [x.target, addend.target];
  record('add', sum, [toX, toAddend], [], (grad, graph) => {
    if (graph) {
      for (const target of [toX, toAddend]) graphOf(graph).send(target, graphOf(graph).grad);
      return;
    }
    toX?.share(grad);
    toAddend?.share(grad);
  });
}

function computed(
  { name, shape, weight, bias, eps, hasMean }: Call,
  x: Tensor,
  addend: Tensor | null,
): Normed {
  const cols = countOf(shape);
  const rows = cols === 0 ? 0 : x.count / cols;
  const { dtype } = x;
  const inputs = [x, addend, weight, bias];
  const device = jointDevice(name, x, addend, weight, bias);
  const dense = inputs.map((tensor) => tensor && contiguous(tensor));
  const [input, other, gamma, beta] = dense as [Tensor, Tensor | null, Tensor | null, Tensor | null];
  const sum = other ? empty(dtype, x.shape, device) : input;
  const out = empty(dtype, x.shape, device);
  const rowType = isHalf(dtype) ? 'float32' : dtype;
  const mean = hasMean ? allocate(rowType, rows, device) : null;
  const rstd = allocate(rowType, rows, device);
  const toMean = mean?.dense ?? null;
  const scale = gamma?.strided ?? null;
  kernels().norm(
    {
      out: out.strided,
      rstd: rstd.dense,
      a: input.strided,
      mean: toMean,
      addend: other?.strided ?? null,
      sum: other && sum.strided,
      gamma: scale,
      beta: beta?.strided ?? null,
    },
    { rows, cols, eps },
  );
  if (other) recordSum(sum, input, other);
  if (isRecording(sum, gamma, beta)) {
    const [toX, toGamma, toBeta] = [sum.target, gamma?.target ?? null, beta?.target ?? null];
    const values = sum.strided;
    const saved = [sum, gamma].flatMap((tensor) => (tensor ? [tensor.storage] : []));
    const { shape: whole } = x;
    record(name, out, [toX, toGamma, toBeta], [...saved, rstd, ...(mean ? [mean] : [])], (grad, graph) => {
      if (graph) {
        const own = graphOf(graph);
        own.send(toBeta, own.grad, shape);
        const inputs = [{ strided: values, shape: whole, target: toX }];
        if (scale) inputs.push({ strided: scale, shape, target: toGamma });
        own.through(inputs, (a, weights) => {
          const rowwise = a!.reshape([rows, cols]);
          const centred = hasMean ? rowwise.sub(rowwise.mean(-1, true)) : rowwise;
          const normed = centred.mul(centred.square().mean(-1, true).add(eps).rsqrt()).reshape(whole);
          return weights ? normed.mul(weights) : normed;
        });
        return;
      }
      const forGamma = toGamma?.begin() ?? null;
      const forBeta = toBeta?.begin() ?? null;
      kernels().normGrad(
        {
          gradOut: grad.dense,
          rstd: rstd.dense,
          a: values,
          mean: toMean,
          gamma: scale,
          gradIn: toX?.open() ?? null,
          gradGamma: forGamma?.dense ?? null,
          gradBeta: forBeta?.dense ?? null,
        },
        { rows, cols, accumulate: toX?.isFilled ?? false },
      );
      if (toGamma) toGamma.end(forGamma!);
      if (toBeta) toBeta.end(forBeta!);
      if (toX) toX.close();
    });
  }
  mean?.release();
  rstd.release();
  for (const [i, tensor] of dense.entries()) {
    if (tensor && tensor !== inputs[i] && tensor !== sum) tensor.dispose();
  }
  return { out, sum };
}

/** Returns the result, and disposes the dense copy of the input if one was made. */
function only({ out, sum }: Normed, x: Tensor): Tensor {
  if (sum !== x) sum.dispose();
  return out;
}

function layerCall(name: string, shape: Shape, options: LayerNormOptions): Call {
  checkOptions(name, options, layerNormOptions);
  const { weight = null, bias = null, eps = 1e-5 } = options;
  return { name, shape, eps, weight, bias, hasMean: true };
}

/** Computes (x − mean) ÷ √(variance + eps) · weight + bias over the last dimensions, which have the given shape. */
export const layerNorm = (x: Tensor, shape: Shape, options: LayerNormOptions = {}): Tensor =>
  recast('float32', [x], (wide) => layerNorm(wide!, shape, options)) ??
  only(normalised(layerCall('layerNorm', shape, options), x, null), x);

/** Returns [x + residual, layerNorm(x + residual)], computed in one pass over memory. */
export function addLayerNorm(
  x: Tensor,
  residual: Tensor,
  shape: Shape,
  options: LayerNormOptions = {},
): [sum: Tensor, normed: Tensor] {
  const raised = recast('float32', [x, residual], (a, b) => addLayerNorm(a!, b!, shape, options));
  if (raised) return raised;
  requireOperand('addLayerNorm', 'residual', residual);
  const { out, sum } = normalised(layerCall('addLayerNorm', shape, options), x, residual);
  return [sum, out];
}

const epsilons: Readonly<Partial<Record<DType, number>>> = { float64: 2 ** -52 };

/** Computes x ÷ √(mean of squares + eps) · weight over the last dimensions, which have the given shape. */
export function rmsNorm(x: Tensor, shape: Shape, options: RmsNormOptions = {}): Tensor {
  const raised = recast('float32', [x], (wide) => rmsNorm(wide!, shape, options));
  if (raised) return raised;
  requireTensor('rmsNorm', x);
  checkOptions('rmsNorm', options, rmsNormOptions);
  const { weight = null, eps = epsilons[x.dtype] ?? 2 ** -23 } = options;
  if (weight && weight.dtype !== x.dtype && !(isHalf(x.dtype) && weight.dtype === 'float32')) {
    if (!sameShape(weight.shape, shape)) throw differentShapes('rmsNorm', shape, weight.shape);
    // As in PyTorch, the product has the joint dtype of both, and is then converted.
    return scope(() => to(mul(rmsNorm(x, shape, { eps }), weight), x.dtype));
  }
  return only(normalised({ name: 'rmsNorm', shape, weight, bias: null, eps, hasMean: false }, x, null), x);
}
