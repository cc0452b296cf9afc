// Scaled dot-product attention in one kernel forward and one backward, without a matrix of queries × keys in memory,
// except for a mask that requires a gradient (attention-composed.ts).
// Heads are read and written by strides, so that heads inside of a packed projection are not copied.
import { graphOf } from '../../autograd/graph.ts';
import { isRecording, record } from '../../autograd/node.ts';
import type { GradTarget } from '../../autograd/target.ts';
import { kernels } from '../../backends/index.ts';
import type { AttributesFor, OperandsFor } from '../../backends/kernels.ts';
import type { Strided } from '../../backends/operands.ts';
import { checkOptions, optionChecks } from '../../checks/options.ts';
import {
  aGenerator,
  atLeastOne,
  type Check,
  checkValue,
  decayRate,
  finite,
  flag,
  tensorOrNull,
} from '../../checks/value-checks.ts';
import { scope } from '../../core/context.ts';
import { type DType, isHalf } from '../../core/dtype.ts';
import { allocate, type Storage } from '../../core/memory/storage.ts';
import { broadcastStrides, countOf, type Shape, sameShape } from '../../core/shape.ts';
import { empty, Tensor } from '../../core/tensor.ts';
import type { Device } from '../../device/device.ts';
import {
  badAttention,
  badAttentionMask,
  badAttentionMaskShape,
  badPackedAttention,
  mixedDtypes,
  notATensor,
} from '../../errors.ts';
import { defaultGenerator, type Generator } from '../../random/random.ts';
import { recast } from '../elementwise/autocast.ts';
import { contiguous, inFloat32, needsFloat32OnCpu, requireFloat, to } from '../elementwise/convert.ts';
import { jointDevice } from '../joint-device.ts';
import { unbind } from '../shape/rearrange.ts';
import { flatten, reshape, transpose } from '../shape/views.ts';
import { composedAttention, recomputedAttention, type Weighting } from './attention-composed.ts';
import { batched, grouped, type Heads, sharedLead } from './attention-heads.ts';

/** Options of scaledDotProductAttention() and selfAttention(). */
export interface AttentionOptions {
  /** Query i sees keys 0 … i. */
  readonly causal?: boolean;
  /** Multiplies the scores. Default 1 ÷ √width. */
  readonly scale?: number;
  /** Broadcast to [..., queries, keys]: bool, false hiding a key, or floats that are added to the scores. A query that
   *  sees nothing gives 0. For a mask that requires a gradient, weights of all queries × keys are kept in memory. */
  readonly mask?: Tensor | null;
  /** Probability with which a weight is dropped, below 1. Default 0. */
  readonly dropout?: number;
  /** For dropout. Default: the generator that manualSeed seeds. */
  readonly generator?: Generator;
}

/** Options of scaledDotProductAttention(). */
export interface GroupedAttentionOptions extends AttentionOptions {
  /** Whether each head of keys and values serves several adjacent heads of queries. Default false. */
  readonly enableGqa?: boolean;
}

/** Excludes 1, with which every weight would be dropped. */
export const attentionDropout: Check = { ...decayRate, expected: 'a probability from 0 to below 1' };

const attentionChecks = {
  causal: flag,
  scale: finite,
  mask: tensorOrNull,
  dropout: attentionDropout,
  generator: aGenerator,
};
const attentionOptions = optionChecks<AttentionOptions>(attentionChecks);

const groupedOptions = optionChecks<GroupedAttentionOptions>({ ...attentionChecks, enableGqa: flag });

type AttentionSizes = AttributesFor<'attention'>;
type Sizes = Pick<AttentionSizes, 'batch' | 'heads' | 'queries' | 'keys' | 'width' | 'valueWidth'>;

function weightingOf(width: number, options: AttentionOptions): Weighting {
  const { causal = false, scale = 1 / Math.sqrt(width), dropout = 0 } = options;
  return { causal, scale, dropout, generator: options.generator ?? defaultGenerator() };
}

function sizesOf(sizes: Sizes, { causal, scale, dropout, generator }: Weighting): AttentionSizes {
  const words = sizes.batch * sizes.heads * sizes.queries * sizes.keys;
  const stream = dropout > 0 ? generator.take(words) : { seed: 0, offset: 0 };
  return { ...sizes, causal, scale, dropout, stream };
}

/**
 * Refuses a mask that cannot be added to scores of this shape. float32 masks fit scores of any dtype, as in
 * PyTorch.
 */
function checkMask(op: string, dtype: DType, mask: Tensor, full: Shape): void {
  if (!(mask instanceof Tensor)) throw notATensor(op, mask);
  if (mask.dtype !== 'bool' && mask.dtype !== 'float32' && mask.dtype !== dtype)
    throw badAttentionMask(op, mask.dtype, dtype);
  const missing = full.length - mask.rank;
  const fits = missing >= 0 && mask.shape.every((size, d) => size === 1 || size === full[missing + d]);
  if (!fits) throw badAttentionMaskShape(op, mask.shape, full);
}

const learnsMask = (mask: Tensor | null): boolean =>
  mask !== null && mask.target !== null && isRecording(mask);

/** Returns a bool mask unchanged, and another mask in the dtype in which the kernel reads `a`. */
const typedMask = (a: Tensor, mask: Tensor | null): Tensor | null =>
  mask === null || mask.dtype === 'bool' ? mask : to(mask, needsFloat32OnCpu(a) ? 'float32' : a.dtype);

const stridedMask = (mask: Tensor | null, { batch, heads, queries, keys }: Sizes): Strided | null =>
  mask && {
    memory: mask.memory,
    offset: mask.offset,
    strides: broadcastStrides(mask.shape, mask.strides, [batch, heads, queries, keys]),
  };

/** Returns the location of an operand with four strides; missing leading dimensions have stride 0. */
function withFourStrides(
  { shape, strides }: { shape: Shape; strides: Shape },
  { memory, offset }: Strided,
): Strided {
  const missing = 4 - shape.length;
  const four = Array.from({ length: 4 }, (_, d) => (d < missing ? 0 : strides[d - missing]!));
  four[3] = 1;
  return { memory, offset, strides: four };
}

/** Returns the tensor, or a copy whose rows are dense. */
const withDenseRows = (a: Tensor): Tensor =>
  a.strides[a.rank - 1] === 1 || a.shape[a.rank - 1] === 1 ? a : contiguous(a);

/** Returns the location of dense memory in `shape`, with four strides. */
const denseRows = (shape: Shape, strided: Strided): Strided => {
  const strides = [0, 0, shape[shape.length - 1]!, 1];
  for (let d = 1; d >= 0; d--) strides[d] = strides[d + 1]! * (shape[shape.length - 3 + d] ?? 1);
  return { memory: strided.memory, offset: strided.offset, strides };
};

/**
 * Opens a gradient for each input. An input without a target, or with the target of an earlier input, gets a temporary.
 */
function openGrads(
  targets: readonly (GradTarget | null)[],
  counts: readonly number[],
  dtype: DType,
  device: Device,
): Storage[] {
  return targets.map((target, i) =>
    target && targets.indexOf(target) === i ? target.begin() : allocate(dtype, counts[i]!, device),
  );
}

function closeGrads(targets: readonly (GradTarget | null)[], grads: readonly Storage[]): void {
  for (const [i, target] of targets.entries()) {
    if (target) target.end(grads[i]!);
    else grads[i]!.release();
  }
}

function checkOperands(op: string, q: Tensor, k: Tensor, v: Tensor): void {
  for (const tensor of [q, k, v]) {
    requireFloat(op, tensor);
    if (tensor.dtype !== q.dtype) throw mixedDtypes(op, q.dtype, tensor.dtype);
  }
  const fits =
    [q, k, v].every(({ rank }) => rank >= 2) &&
    k.shape.at(-1) === q.shape.at(-1) &&
    k.shape.at(-2) === v.shape.at(-2) &&
    q.shape.at(-1) !== 0;
  if (!fits) throw badAttention(op, q.shape, k.shape, v.shape);
}

/**
 * Computes softmax(scale · q kᵀ + mask) v, for q [..., queries, width], k [..., keys, width] and v [..., keys,
 * valueWidth]. Leading dimensions, such as batch and heads, are broadcast. Memory grows with queries + keys,
 * not with their product, unless the mask requires a gradient.
 */
export function scaledDotProductAttention(
  q: Tensor,
  k: Tensor,
  v: Tensor,
  options: GroupedAttentionOptions = {},
): Tensor {
  const lowered = recast('low', [q, k, v], (...t) => scaledDotProductAttention(t[0]!, t[1]!, t[2]!, options));
  if (lowered) return lowered;
  const op = 'scaledDotProductAttention';
  checkOptions(op, options, groupedOptions);
  checkOperands(op, q, k, v);
  const weighting = weightingOf(q.shape.at(-1)!, options);
  const heads = { q, k, v, mask: options.mask ?? null };
  if (!options.enableGqa) return ofHeads(op, heads, weighting);
  return scope(() => flatten(ofHeads(op, grouped(op, heads), weighting), -4, -3));
}

function ofHeads(op: string, heads: Heads, weighting: Weighting): Tensor {
  const { q, k, v, mask } = heads;
  const lead = sharedLead(op, heads);
  const [queries, valueWidth] = [q.shape.at(-2)!, v.shape.at(-1)!];
  if (mask) checkMask(op, q.dtype, mask, [...lead, queries, k.shape.at(-2)!]);
  if (learnsMask(mask)) return composedAttention(heads, weighting);
  const isPlain = lead.length <= 2 && [q, k, v].every((a) => sameShape(a.shape.slice(0, -2), lead));
  if (isPlain) return ofBatches(op, heads, weighting);
  return scope(() => reshape(ofBatches(op, batched(heads, lead), weighting), [...lead, queries, valueWidth]));
}

/** Computes attention of q, k and v with the same leading dimensions: batch and heads, heads, or none. */
function ofBatches(op: string, { q, k, v, mask }: Heads, weighting: Weighting): Tensor {
  const [queries, width] = q.shape.slice(-2) as [number, number];
  const [keys, valueWidth] = v.shape.slice(-2) as [number, number];
  const lead = q.shape.slice(0, -2);
  const plain = {
    ...{ batch: lead.length === 2 ? lead[0]! : 1, heads: lead.at(-1) ?? 1 },
    ...{ queries, keys, width, valueWidth },
  };
  const sizes = sizesOf(plain, weighting);
  const typed = typedMask(q, mask);
  const wide = [q, k, v].map((a) => (needsFloat32OnCpu(a) ? to(a, 'float32') : a));
  const rows = wide.map(withDenseRows) as [Tensor, Tensor, Tensor];
  const result = attended(op, rows, typed, sizes, [...lead, queries, valueWidth]);
  const out = to(result, q.dtype);
  const given = [q, k, v, mask, out];
  for (const tensor of new Set([...wide, ...rows, typed, result])) {
    if (tensor && !given.includes(tensor)) tensor.dispose();
  }
  return out;
}

const lseType = ({ dtype }: Tensor): DType => (isHalf(dtype) ? 'float32' : dtype);

/** Adds the gradients. Written out, because the copy of an object by spreading takes as long as a small kernel. */
function withGrads(
  { out, lse, q, k, v, mask }: OperandsFor<'attention'>,
  gradOut: Strided,
  [gradQ, gradK, gradV]: readonly [Strided, Strided, Strided],
): OperandsFor<'attentionGrad'> {
  return { out, lse, q, k, v, mask, gradOut, gradQ, gradK, gradV };
}

function attended(
  op: string,
  [q, k, v]: readonly [Tensor, Tensor, Tensor],
  mask: Tensor | null,
  sizes: AttentionSizes,
  shape: Shape,
): Tensor {
  const device = jointDevice(op, q, k, v, mask);
  const out = empty(q.dtype, shape, device);
  const lse = allocate(lseType(q), sizes.batch * sizes.heads * sizes.queries, device);
  const operands: OperandsFor<'attention'> = {
    out: denseRows(shape, out.strided),
    lse: lse.dense,
    q: withFourStrides(q, q.strided),
    k: withFourStrides(k, k.strided),
    v: withFourStrides(v, v.strided),
    mask: stridedMask(mask, sizes),
  };
  kernels().attention(operands, sizes);
  if (isRecording(q, k, v)) {
    const targets = [q.target, k.target, v.target];
    const inputs = [q, k, v].map(({ shape: own, count }) => ({ shape: own, count }));
    const saved = [q, k, v, out, ...(mask ? [mask] : [])].map((tensor) => tensor.storage);
    const { dtype } = q;
    const strides = [q.strided, k.strided, v.strided];
    const added = mask && { strided: mask.strided, shape: mask.shape };
    record(op, out, targets, [...saved, lse], (grad, graph) => {
      if (graph) {
        const own = graphOf(graph);
        const values = inputs.map(({ shape: size }, i) => ({
          ...{ strided: strides[i]!, shape: size, target: targets[i]! },
        }));
        own.through(values, (...heads) =>
          recomputedAttention(heads, added && own.saved(added.strided, added.shape, null), sizes).reshape(
            shape,
          ),
        );
        return;
      }
      const counts = inputs.map(({ count }) => count);
      const grads = openGrads(targets, counts, dtype, device);
      const [gradQ, gradK, gradV] = grads.map((into, i) => denseRows(inputs[i]!.shape, into.dense));
      const gradOut = denseRows(shape, grad.dense);
      kernels().attentionGrad(withGrads(operands, gradOut, [gradQ!, gradK!, gradV!]), sizes);
      closeGrads(targets, grads);
    });
  }
  lse.release();
  return out;
}

/** Returns the location of part 0 (queries), 1 (keys) or 2 (values) in a dense [batch, time, parts · channels]. */
function packedRows({ memory, offset }: Strided, part: number, parts: number, sizes: Sizes): Strided {
  const channels = sizes.heads * sizes.width;
  const row = parts * channels;
  return { memory, offset: offset + part * channels, strides: [sizes.queries * row, sizes.width, row, 1] };
}

/**
 * Computes scaledDotProductAttention of a packed projection qkv [..., time, 3 · channels]: queries, keys, then values,
 * each head after head. Returns [..., time, channels]. Does not copy heads apart; copies qkv if it is not contiguous.
 */
export function selfAttention(qkv: Tensor, heads: number, options: AttentionOptions = {}): Tensor {
  const lowered = recast('low', [qkv], (packed) => selfAttention(packed!, heads, options));
  if (lowered) return lowered;
  const op = 'selfAttention';
  checkOptions(op, options, attentionOptions);
  requireFloat(op, qkv);
  checkValue('selfAttention: heads', heads, atLeastOne);
  const [time, packed] = qkv.shape.slice(-2) as [number, number];
  const width = packed / 3 / heads;
  const fits = qkv.rank >= 2 && Number.isInteger(width) && width > 0 && heads > 0 && Number.isInteger(heads);
  if (!fits) throw badPackedAttention(qkv.shape, heads);
  const batch = countOf(qkv.shape.slice(0, -2));
  const plain = { batch, heads, queries: time, keys: time, width, valueWidth: width };
  const weighting = weightingOf(width, options);
  const { mask = null } = options;
  if (mask) checkMask(op, qkv.dtype, mask, [batch, heads, time, time]);
  if (learnsMask(mask)) return composedPacked(qkv, plain, mask, weighting);
  const typed = typedMask(qkv, mask);
  const sizes = sizesOf(plain, weighting);
  const run = (a: Tensor): Tensor => attendedPacked(op, a, typed, sizes);
  const out = needsFloat32OnCpu(qkv) ? inFloat32(qkv, run) : run(qkv);
  if (typed !== mask) typed?.dispose();
  return out;
}

function composedPacked(
  qkv: Tensor,
  { batch, heads, queries, width }: Sizes,
  mask: Tensor | null,
  weighting: Weighting,
): Tensor {
  return scope(() => {
    const apart = unbind(reshape(qkv, [batch, queries, 3, heads, width]), 2);
    const [q, k, v] = apart.map((part) => transpose(part, 1, 2)) as [Tensor, Tensor, Tensor];
    const out = transpose(composedAttention({ q, k, v, mask }, weighting), 1, 2);
    return reshape(out, [...qkv.shape.slice(0, -1), heads * width]);
  });
}

function attendedPacked(op: string, qkv: Tensor, mask: Tensor | null, sizes: AttentionSizes): Tensor {
  const dense = contiguous(qkv);
  const device = jointDevice(op, qkv, mask);
  const out = empty(qkv.dtype, [...qkv.shape.slice(0, -1), sizes.heads * sizes.width], device);
  const lse = allocate(lseType(qkv), sizes.batch * sizes.heads * sizes.queries, device);
  const [q, k, v] = [0, 1, 2].map((part) => packedRows(dense.strided, part, 3, sizes));
  const operands: OperandsFor<'attention'> = {
    out: packedRows(out.strided, 0, 1, sizes),
    lse: lse.dense,
    q: q!,
    k: k!,
    v: v!,
    mask: stridedMask(mask, sizes),
  };
  kernels().attention(operands, sizes);
  if (isRecording(dense)) {
    const target = dense.target!;
    const saved = [dense, out, ...(mask ? [mask] : [])].map((tensor) => tensor.storage);
    const outShape = out.shape;
    const packed = { strided: dense.strided, shape: dense.shape, target };
    const added = mask && { strided: mask.strided, shape: mask.shape };
    record(op, out, [target], [...saved, lse], (grad, graph) => {
      if (graph) {
        const own = graphOf(graph);
        own.through([packed], (qkv) => {
          const { batch, heads, queries, width } = sizes;
          const apart = unbind(reshape(qkv!, [batch, queries, 3, heads, width]), 2);
          const turned = apart.map((part) => transpose(part, 1, 2));
          const typed = added && own.saved(added.strided, added.shape, null);
          return reshape(transpose(recomputedAttention(turned, typed, sizes), 1, 2), outShape);
        });
        return;
      }
      const into = target.begin();
      const [gradQ, gradK, gradV] = [0, 1, 2].map((part) => packedRows(into.dense, part, 3, sizes));
      const gradOut = packedRows(grad.dense, 0, 1, sizes);
      kernels().attentionGrad(withGrads(operands, gradOut, [gradQ!, gradK!, gradV!]), sizes);
      target.end(into);
    });
  }
  lse.release();
  if (dense !== qkv) dense.dispose();
  return out;
}
