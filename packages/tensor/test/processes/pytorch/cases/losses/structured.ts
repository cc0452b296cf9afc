// Cases of losses of sequences and of many classes, of bags of vectors, of bilinear products, and of random slopes.
import type { Arg, Ref } from '../../case.ts';
import { type Draft, nothing } from '../../draft.ts';
import { options } from '../arrays/arrays.ts';
import { indices } from '../arrays/lookups.ts';
import type { Makers } from '../index.ts';

const floatOf = (d: Draft) => d.draws.pick(['float32', 'float32', 'float64'] as const);

/** What ctcLoss() takes behind log probabilities, for `classes` of which `blank` is one. */
interface Ctc {
  readonly shape: number[];
  readonly rest: (d: Draft) => readonly Arg[];
  readonly blank: number;
}

function ctcOf(d: Draft): Ctc {
  const { draws } = d;
  const isBatched = draws.chance(0.8);
  const batch = isBatched ? draws.int(1, 3) : 1;
  const [frames, classes] = [draws.int(4, 7), draws.int(2, 4)];
  const blank = draws.chance(0.3) ? classes - 1 : 0;
  const lengths = Array.from({ length: batch }, () => draws.int(0, 3));
  const longest = Math.max(1, ...lengths);
  const inputs = lengths.map((length) => draws.int(Math.min(frames, 2 * length), frames));
  const label = (): number => (draws.int(0, classes - 2) + (blank === 0 ? 1 : 0)) as number;
  const rest = (own: Draft): readonly Arg[] => {
    const isPadded = draws.chance(0.5);
    const sum = lengths.reduce((a, b) => a + b, 0);
    const count = isPadded ? batch * longest : sum;
    const shape = isPadded && isBatched ? [batch, longest] : [isPadded ? longest : sum];
    if (isPadded && !isBatched) lengths[0] = longest;
    const type = draws.pick(['int64', 'int32'] as const);
    const targets = own.given(Array.from({ length: count }, label), shape, type, false);
    const asTensors = draws.chance(0.4);
    const list = (values: number[]): Arg =>
      isBatched ? (asTensors ? own.given(values, [batch], 'int64', false) : values) : values[0]!;
    return [targets, list(inputs), list(lengths)];
  };
  return { shape: isBatched ? [frames, batch, classes] : [frames, classes], rest, blank };
}

function ctcOptions(d: Draft, blank: number): Arg {
  return options({
    blank: blank === 0 ? nothing : blank,
    reduction: d.draws.pick([nothing, 'mean', 'sum', 'none']),
    zeroInfinity: d.draws.pick<Arg>([nothing, true, true]),
  });
}

function ctcLoss(d: Draft): void {
  const { shape, rest, blank } = ctcOf(d);
  const x = d.tensor(shape, { dtype: floatOf(d), domain: 'real' });
  const args = rest(d);
  const count = d.inputs.length;
  d.call('logSoftmax', x, -1);
  const all: readonly Arg[] = [{ $: count }, ...args, ctcOptions(d, blank)];
  d.steps.push({ op: 'ctcLoss', via: 'function', args: all.at(-1) === nothing ? all.slice(0, -1) : all });
}

function ctcLayer(d: Draft): void {
  const { shape, rest, blank } = ctcOf(d);
  const x = d.tensor(shape, { domain: 'real' });
  const args = rest(d);
  const count = d.inputs.length;
  d.call('logSoftmax', x, -1);
  d.callModule('CTCLoss', [ctcOptions(d, blank)], {}, [{ $: count }, ...args]);
}

function linearLoss(d: Draft): { x: Ref; weight: number[]; target: Ref; own: Record<string, Arg> } {
  const { draws } = d;
  const dtype = floatOf(d);
  const isRow = draws.chance(0.2);
  const [batch, width, classes] = [draws.int(1, 3), draws.int(1, 3), draws.int(2, 4)];
  const space = !isRow && draws.chance(0.4) ? [draws.int(1, 2)] : [];
  const front = isRow ? [] : [batch];
  const x = d.tensor([...front, width], { dtype, domain: 'finite' });
  const target = draws.chance(0.7)
    ? d.tensor([...front, ...space], { dtype: 'int64', domain: [0, classes - 1] })
    : d.tensor([...front, classes, ...space], { dtype, domain: 'positive', grad: false });
  const own = {
    reduction: draws.pick([nothing, 'sum', 'none']),
    labelSmoothing: draws.pick([nothing, nothing, 0.2]),
    weight: draws.chance(0.3)
      ? d.tensor([classes], { dtype, domain: 'positive', grad: false, views: false })
      : nothing,
  };
  return { x, weight: [classes, ...space, width], target, own };
}

function linearCrossEntropy(d: Draft): void {
  const { x, weight, target, own } = linearLoss(d);
  const dtype = d.inputs[0]!.dtype;
  const w = d.tensor(weight, { dtype, domain: 'finite' });
  const linearBias = d.draws.chance(0.4)
    ? d.tensor(weight.slice(0, -1), { dtype, domain: 'finite' })
    : nothing;
  d.call('linearCrossEntropy', x, w, target, options({ ...own, linearBias }));
}

function linearLayer(d: Draft): void {
  const { draws } = d;
  const [batch, width, classes] = [draws.int(1, 3), draws.int(1, 3), draws.int(2, 4)];
  const outFeatures = draws.chance(0.4) ? [2] : [];
  const hasBias = draws.chance(0.4);
  const x = d.tensor([batch, width], { domain: 'finite' });
  const target = d.tensor([batch, ...outFeatures], { dtype: 'int64', domain: [0, classes - 1] });
  const rows = outFeatures.reduce((a, b) => a * b, classes);
  const state: Record<string, Ref> = {
    'linear.weight': d.tensor([rows, width], { domain: 'finite', views: false }),
    ...(hasBias ? { 'linear.bias': d.tensor([rows], { domain: 'finite', views: false }) } : {}),
  };
  const own = options({
    outFeatures,
    bias: hasBias ? true : nothing,
    reduction: draws.pick([nothing, 'sum']),
  });
  d.callModule('LinearCrossEntropyLoss', [width, classes, own], state, [x, target]);
}

function adaptive(d: Draft): void {
  const { draws } = d;
  const cutoffs = draws.pick([[2], [2, 4], [1, 3, 5]]);
  const hasBias = draws.chance(0.4);
  const width = 8;
  const batch = draws.int(1, 4);
  const isRow = draws.chance(0.15);
  const x = d.tensor(isRow ? [width] : [batch, width], { domain: 'finite' });
  const target = d.tensor(isRow ? [] : [batch], { dtype: 'int64', domain: [0, 6] });
  const parameter = (...shape: number[]): Ref => d.tensor(shape, { domain: 'finite', views: false });
  const ends = [...cutoffs, 7];
  const state: Record<string, Ref> = { 'head.weight': parameter(cutoffs[0]! + cutoffs.length, width) };
  if (hasBias) state['head.bias'] = parameter(cutoffs[0]! + cutoffs.length);
  for (const [i, cutoff] of cutoffs.entries()) {
    const inner = Math.floor(width / 2 ** (i + 1));
    state[`tail.${i}.0.weight`] = parameter(inner, width);
    state[`tail.${i}.1.weight`] = parameter(ends[i + 1]! - cutoff, inner);
  }
  const own = options({ divValue: 2, headBias: hasBias ? true : nothing });
  d.callModule('AdaptiveLogSoftmaxWithLoss', [width, 7, cutoffs, own], state, [x, target]);
}

interface Bag {
  readonly index: Ref;
  readonly offsets: Arg;
  readonly rows: number;
  readonly own: Record<string, Arg>;
  readonly shape: number[];
}

function bag(d: Draft): Bag {
  const { draws } = d;
  const rows = draws.int(2, 5);
  const isMatrix = draws.chance(0.4);
  const shape = isMatrix ? [draws.int(1, 3), draws.int(1, 3)] : [draws.int(1, 6)];
  const index = indices(d, shape, rows);
  const includesLast = !isMatrix && draws.chance(0.3);
  const count = draws.int(1, 3);
  const starts = Array.from({ length: count }, () => draws.int(0, shape[0]!)).sort((a, b) => a - b);
  if (draws.chance(0.95)) starts[0] = 0;
  if (includesLast) starts.push(shape[0]!);
  const offsets = isMatrix
    ? nothing
    : d.given(starts, [starts.length], draws.pick(['int64', 'int32'] as const));
  const own = {
    mode: draws.pick([nothing, 'sum', 'mean', 'max', 'max']),
    includeLastOffset: includesLast ? true : nothing,
    paddingIdx: draws.chance(0.3) ? draws.int(-rows, rows - 1) : nothing,
  };
  return { index, offsets, rows, own, shape };
}

function embeddingBag(d: Draft): void {
  const { draws } = d;
  const { index, offsets, rows, own, shape } = bag(d);
  const dtype = floatOf(d);
  const weight = d.tensor([rows, draws.int(1, 3)], { dtype, domain: 'finite' });
  const perSampleWeights =
    own.mode === 'sum' && draws.chance(0.6) ? d.tensor(shape, { dtype, domain: 'finite' }) : nothing;
  d.call('embeddingBag', index, weight, offsets, options({ ...own, perSampleWeights }));
}

function bagLayer(d: Draft): void {
  const { index, offsets, rows, own } = bag(d);
  const width = d.draws.int(1, 3);
  const weight = d.tensor([rows, width], { domain: 'finite', views: false });
  d.callModule(
    'EmbeddingBag',
    [rows, width, options(own)],
    { weight },
    [index, offsets].slice(0, offsets === nothing ? 1 : 2),
  );
}

function bilinear(d: Draft): void {
  const { draws } = d;
  const dtype = d.floatType();
  const front = d.shape(0, 2);
  const [in1, in2, outs] = [draws.int(1, 3), draws.int(1, 3), draws.int(1, 3)];
  const tensor = (shape: number[]): Ref => d.tensor(shape, { dtype, domain: 'finite' });
  const [x1, x2] = [tensor([...front, in1]), tensor([...front, in2 + Number(draws.chance(0.05))])];
  d.call('bilinear', x1, x2, tensor([outs, in1, in2]), draws.chance(0.5) ? tensor([outs]) : nothing);
}

function bilinearLayer(d: Draft): void {
  const hasBias = d.draws.chance(0.5);
  const tensor = (...shape: number[]): Ref => d.tensor(shape, { domain: 'finite', views: false });
  const state: Record<string, Ref> = { weight: tensor(2, 3, 4), ...(hasBias ? { bias: tensor(2) } : {}) };
  const own: readonly Arg[] = [3, 4, 2, hasBias ? nothing : { bias: false }];
  d.callModule('Bilinear', own, state, [tensor(2, 3), tensor(2, 4)]);
}

function rrelu(d: Draft): void {
  const x = d.tensor(d.shape(), { dtype: d.floatType() });
  const limits = d.draws.pick<readonly Arg[]>([[], [0.1], [0.25, 0.5], [0.5, 0.25]]);
  const training = d.draws.chance(0.4);
  if (training) d.compares = 'kind';
  const args = limits.length === 2 ? limits : [...limits, nothing, nothing].slice(0, 2);
  d.call('rrelu', x, ...args, training ? { training: true } : nothing);
}

function gumbelSoftmax(d: Draft): void {
  const shape = d.shape(1);
  const x = d.tensor(shape, { dtype: d.floatType(), domain: 'finite' });
  d.compares = 'kind';
  d.call(
    'gumbelSoftmax',
    x,
    d.dim(shape.length),
    options({ tau: d.draws.pick([nothing, 0.5]), hard: d.draws.pick<Arg>([nothing, true]) }),
  );
}

function rreluLayer(d: Draft): void {
  d.callModule(
    'RReLU',
    d.draws.pick([[], [0.25, 0.5]]),
    {},
    [d.tensor(d.shape(1), { domain: 'finite' })],
    false,
  );
}

export const structured: Makers = {
  ctcLoss: { draw: ctcLoss, count: 30 },
  'nn.CTCLoss': { draw: ctcLayer, count: 8 },
  linearCrossEntropy: { draw: linearCrossEntropy, count: 24, isUnsteady: true },
  'nn.LinearCrossEntropyLoss': { draw: linearLayer, count: 8, isUnsteady: true },
  'nn.AdaptiveLogSoftmaxWithLoss': { draw: adaptive, count: 12 },
  embeddingBag: { draw: embeddingBag, count: 50 },
  'nn.EmbeddingBag': { draw: bagLayer, count: 10 },
  bilinear: { draw: bilinear, count: 20 },
  'nn.Bilinear': { draw: bilinearLayer, count: 4 },
  rrelu: { draw: rrelu, count: 16 },
  'nn.RReLU': { draw: rreluLayer, count: 4 },
  gumbelSoftmax: { draw: gumbelSoftmax, count: 10 },
};
