// Cases of PyTorch's MultiheadAttention and transformer, and of rotary embeddings. No case hides all keys of a query:
// PyTorch's kernels give different results for it.
import type { Arg, Ref } from '../../case.ts';
import { type Draft, nothing } from '../../draft.ts';
import type { Makers } from '../index.ts';

type State = Record<string, Ref>;
type Options = Record<string, Arg>;

const parameter = (d: Draft, ...shape: number[]): Ref => d.tensor(shape, { domain: 'share', views: false });
const input = (d: Draft, shape: readonly number[]): Ref => d.tensor(shape, { domain: 'coarse' });
const optionsOrNothing = (options: Options): Arg => (Object.keys(options).length > 0 ? options : nothing);

function linearState(d: Draft, outs: number, ins: number, hasBias: boolean, prefix: string): State {
  const weight = parameter(d, outs, ins);
  return { [`${prefix}weight`]: weight, ...(hasBias ? { [`${prefix}bias`]: parameter(d, outs) } : {}) };
}

function attentionState(d: Draft, width: number, hasBias: boolean, prefix = ''): State {
  return {
    [`${prefix}in_proj_weight`]: parameter(d, 3 * width, width),
    ...(hasBias ? { [`${prefix}in_proj_bias`]: parameter(d, 3 * width) } : {}),
    ...linearState(d, width, width, hasBias, `${prefix}out_proj.`),
  };
}

/** Draws a mask of bool or floats; the first key is never hidden. */
function mask(d: Draft, shape: readonly number[], kind = d.draws.pick(['bool', 'float32'] as const)): Ref {
  const keys = shape.at(-1)!;
  const count = shape.reduce((a, b) => a * b, 1);
  const values = Array.from({ length: count }, (_, i) => {
    const isHidden = i % keys !== 0 && d.draws.chance(0.3);
    if (kind === 'bool') return Number(isHidden);
    return isHidden ? '-inf' : d.draws.pick([0, 0, 0.5, -1]);
  });
  return d.given(values, shape, kind, false);
}

/** Draws the mask that hides later keys. */
function causalMask(d: Draft, size: number): Ref {
  const values = Array.from({ length: size * size }, (_, i) =>
    i % size > Math.floor(i / size) ? '-inf' : 0,
  );
  return d.given(values, [size, size], 'float32', false);
}

function multihead(d: Draft): void {
  const { draws } = d;
  const heads = draws.int(1, 2);
  const width = heads * draws.int(1, 2);
  const [hasBias, batchFirst, isBatched] = [draws.chance(0.7), draws.chance(0.4), draws.chance(0.8)];
  const [kdim, vdim] = draws.chance(0.3) ? [draws.int(1, 3), draws.int(1, 3)] : [width, width];
  const isOne = kdim === width && vdim === width;
  const [batch, queries, keys] = [draws.int(1, 2), draws.int(1, 3), draws.int(1, 3)];
  const shape = (time: number, size: number): number[] =>
    !isBatched ? [time, size] : batchFirst ? [batch, time, size] : [time, batch, size];
  const query = input(d, shape(queries, width + Number(draws.chance(0.04))));
  const isSelf = isOne && draws.chance(0.4);
  const count = isSelf ? queries : keys;
  const [key, value] = isSelf ? [query, query] : [input(d, shape(keys, kdim)), input(d, shape(keys, vdim))];
  const options: Options = {};
  const kind = draws.pick(['bool', 'float32'] as const);
  if (draws.chance(0.4)) options.keyPaddingMask = mask(d, isBatched ? [batch, count] : [count], kind);
  const way = draws.uniform();
  if (way < 0.4) {
    const lead = draws.chance(0.4) ? [(isBatched ? batch : 1) * heads] : [];
    options.attnMask = mask(d, [...lead, queries, count], kind);
  } else if (queries === count && way < 0.7) {
    options.attnMask = causalMask(d, count);
    if (kind !== 'bool') options.isCausal = true;
    else options.keyPaddingMask = null;
  }
  if (draws.chance(0.4)) options.needWeights = false;
  if (draws.chance(0.3)) options.averageAttnWeights = false;
  const [addBiasKv, addZeroAttn] = options.isCausal ? [false, false] : [draws.chance(0.2), draws.chance(0.2)];
  const own: Options = {
    ...(hasBias ? {} : { bias: false }),
    ...(addBiasKv ? { addBiasKv } : {}),
    ...(addZeroAttn ? { addZeroAttn } : {}),
    ...(batchFirst ? { batchFirst } : {}),
    ...(kdim === width ? {} : { kdim }),
    ...(vdim === width ? {} : { vdim }),
  };
  const separate = (): State => ({
    q_proj_weight: parameter(d, width, width),
    k_proj_weight: parameter(d, width, kdim),
    v_proj_weight: parameter(d, width, vdim),
    ...(hasBias ? { in_proj_bias: parameter(d, 3 * width) } : {}),
    ...linearState(d, width, width, hasBias, 'out_proj.'),
  });
  const extra = addBiasKv ? { bias_k: parameter(d, 1, 1, width), bias_v: parameter(d, 1, 1, width) } : {};
  const state = { ...(isOne ? attentionState(d, width, hasBias) : separate()), ...extra };
  const args = [query, key, value, ...(Object.keys(options).length > 0 ? [options] : [])];
  d.callModule('MultiheadAttention', [width, heads, optionsOrNothing(own)], state, args);
}

const [width, hidden] = [4, 3];

const normState = (d: Draft, name: string, hasBias: boolean): State => ({
  [`${name}.weight`]: parameter(d, width),
  ...(hasBias ? { [`${name}.bias`]: parameter(d, width) } : {}),
});

function layerState(d: Draft, kind: 'encoder' | 'decoder', hasBias: boolean, prefix = ''): State {
  const norms = kind === 'encoder' ? [1, 2] : [1, 2, 3];
  return {
    ...attentionState(d, width, hasBias, `${prefix}self_attn.`),
    ...(kind === 'decoder' ? attentionState(d, width, hasBias, `${prefix}multihead_attn.`) : {}),
    ...linearState(d, hidden, width, hasBias, `${prefix}linear1.`),
    ...linearState(d, width, hidden, hasBias, `${prefix}linear2.`),
    ...Object.assign({}, ...norms.map((i) => normState(d, `${prefix}norm${i}`, hasBias))),
  };
}

/** Draws the options of layers; dropout is 0, because the random numbers differ. */
function layerOptions(d: Draft): { options: Options; hasBias: boolean; batchFirst: boolean } {
  const { draws } = d;
  const [hasBias, batchFirst] = [draws.chance(0.8), draws.chance(0.5)];
  const options: Options = {
    dimFeedforward: hidden,
    dropout: 0,
    ...(draws.chance(0.4) ? { activation: 'gelu' } : {}),
    ...(draws.chance(0.4) ? { normFirst: true } : {}),
    ...(draws.chance(0.3) ? { layerNormEps: 0.1 } : {}),
    ...(hasBias ? {} : { bias: false }),
    ...(batchFirst ? { batchFirst } : {}),
  };
  return { options, hasBias, batchFirst };
}

interface Sizes {
  readonly batch: number;
  readonly time: number;
  readonly memory: number;
}

const sizesOf = ({ draws }: Draft): Sizes => ({
  batch: draws.int(1, 2),
  time: draws.int(1, 3),
  memory: draws.int(1, 3),
});

const shapeOf = (batchFirst: boolean, batch: number, time: number): number[] =>
  batchFirst ? [batch, time, width] : [time, batch, width];

/** Draws masks for a sequence that attends to `keys`, under the names that `name` gives. */
function masks(d: Draft, batch: number, time: number, keys: number, name: string, padding: string): Options {
  const kind = d.draws.pick(['bool', 'float32'] as const);
  return {
    ...(d.draws.chance(0.4) ? { [name]: mask(d, [time, keys], kind) } : {}),
    ...(d.draws.chance(0.4) ? { [padding]: mask(d, [batch, keys], kind) } : {}),
  };
}

const withOptions = (args: readonly Arg[], options: Options): readonly Arg[] =>
  Object.keys(options).length > 0 ? [...args, options] : args;

function encoderLayer(d: Draft): void {
  const { options, hasBias, batchFirst } = layerOptions(d);
  const { batch, time } = sizesOf(d);
  const src = input(d, shapeOf(batchFirst, batch, time));
  const own = masks(d, batch, time, time, 'srcMask', 'srcKeyPaddingMask');
  const state = layerState(d, 'encoder', hasBias);
  d.callModule('TransformerEncoderLayer', [width, 2, options], state, withOptions([src], own));
}

function decoderMasks(d: Draft, { batch, time, memory }: Sizes): Options {
  return {
    ...masks(d, batch, time, time, 'tgtMask', 'tgtKeyPaddingMask'),
    ...masks(d, batch, time, memory, 'memoryMask', 'memoryKeyPaddingMask'),
  };
}

function decoderLayer(d: Draft): void {
  const { options, hasBias, batchFirst } = layerOptions(d);
  const sizes = sizesOf(d);
  const tgt = input(d, shapeOf(batchFirst, sizes.batch, sizes.time));
  const memory = input(d, shapeOf(batchFirst, sizes.batch, sizes.memory));
  const own = decoderMasks(d, sizes);
  const state = layerState(d, 'decoder', hasBias);
  d.callModule('TransformerDecoderLayer', [width, 2, options], state, withOptions([tgt, memory], own));
}

const stack =
  (kind: 'encoder' | 'decoder') =>
  (d: Draft): void => {
    const { options, hasBias, batchFirst } = layerOptions(d);
    const [count, hasNorm] = [d.draws.int(1, 2), d.draws.chance(0.5)];
    const sizes = sizesOf(d);
    const tgt = input(d, shapeOf(batchFirst, sizes.batch, sizes.time));
    const memory = kind === 'decoder' ? [input(d, shapeOf(batchFirst, sizes.batch, sizes.memory))] : [];
    const own =
      kind === 'encoder'
        ? masks(d, sizes.batch, sizes.time, sizes.time, 'mask', 'srcKeyPaddingMask')
        : decoderMasks(d, sizes);
    const state: State = {};
    for (let i = 0; i < count; i++) Object.assign(state, layerState(d, kind, hasBias, `layers.${i}.`));
    if (hasNorm) Object.assign(state, normState(d, 'norm', true));
    const name = kind === 'encoder' ? 'TransformerEncoder' : 'TransformerDecoder';
    const given: Arg[] = [[width, 2, options], count, ...(hasNorm ? [width] : [])];
    d.callModule(name, given, state, withOptions([tgt, ...memory], own));
  };

function transformer(d: Draft): void {
  const { options, hasBias, batchFirst } = layerOptions(d);
  const sizes = sizesOf(d);
  const src = input(d, shapeOf(batchFirst, sizes.batch, sizes.memory));
  const tgt = input(d, shapeOf(batchFirst, sizes.batch, sizes.time));
  const own = {
    ...masks(d, sizes.batch, sizes.memory, sizes.memory, 'srcMask', 'srcKeyPaddingMask'),
    ...decoderMasks(d, sizes),
  };
  const counts = { numEncoderLayers: d.draws.int(1, 2), numDecoderLayers: 1 };
  const state: State = {};
  for (let i = 0; i < counts.numEncoderLayers; i++)
    Object.assign(state, layerState(d, 'encoder', hasBias, `encoder.layers.${i}.`));
  Object.assign(state, layerState(d, 'decoder', hasBias, 'decoder.layers.0.'));
  Object.assign(state, normState(d, 'encoder.norm', hasBias), normState(d, 'decoder.norm', hasBias));
  d.callModule('Transformer', [width, 2, { ...options, ...counts }], state, withOptions([src, tgt], own));
}

function rotaryEmbedding(d: Draft): void {
  const { draws } = d;
  const own = draws.chance(0.5) ? nothing : { base: draws.pick([10, 500_000]) };
  const positions = draws.chance(0.5)
    ? draws.int(0, 9)
    : d.tensor(d.shape(0, 2), { dtype: draws.pick(['int64', 'int32'] as const), domain: [0, 9] });
  d.call('rotaryEmbedding', positions, 2 * draws.int(1, 4), own);
}

function applyRotary(d: Draft): void {
  const { draws } = d;
  const dtype = d.floatType();
  const half = draws.int(1, 3);
  const lead = d.shape(0, 2);
  const time = draws.int(1, 3);
  const x = d.tensor([...lead, time, 2 * half + Number(draws.chance(0.04))], { dtype, domain: 'finite' });
  const shape = draws.chance(0.2) && lead.length > 0 ? [lead.at(-1)!, time, half] : [time, half];
  const table = (): Ref => d.tensor(shape, { domain: 'real' });
  const layout = draws.pick(['', 'half', 'interleaved']);
  d.call('applyRotary', x, table(), table(), layout === '' ? nothing : { layout });
}

export const transformers: Makers = {
  'nn.MultiheadAttention': { draw: multihead, count: 24, isUnsteady: true },
  'nn.TransformerEncoderLayer': { draw: encoderLayer, count: 10, isUnsteady: true },
  'nn.TransformerDecoderLayer': { draw: decoderLayer, count: 10, isUnsteady: true },
  'nn.TransformerEncoder': { draw: stack('encoder'), count: 5, isUnsteady: true },
  'nn.TransformerDecoder': { draw: stack('decoder'), count: 5, isUnsteady: true },
  'nn.Transformer': { draw: transformer, count: 5, isUnsteady: true },
  'nn.Transformer.generateSquareSubsequentMask': {
    draw: (d) =>
      d.steps.push({
        op: 'nn.Transformer.generateSquareSubsequentMask',
        via: 'function',
        args: [d.draws.int(1, 4)],
      }),
    count: 2,
  },
  rotaryEmbedding: { draw: rotaryEmbedding, count: 10 },
  applyRotary: { draw: applyRotary, count: 14 },
};
