// Cases of operations on planes, signals and volumes.
import type { Arg, Ref } from '../../case.ts';
import { countOf, type Draft, isFloat, nothing } from '../../draft.ts';
import type { Makers } from '../index.ts';

type Options = Record<string, Arg>;
export const optionsOrNothing = (options: Options): Arg =>
  Object.keys(options).length > 0 ? options : nothing;
export const maybe = (d: Draft, share: number, name: string, value: () => Arg): Options =>
  d.draws.chance(share) ? { [name]: value() } : {};

/** Draws one number, or sometimes a list of `count` of them. */
export const several = (d: Draft, count: number, low: number, high: number): Arg => {
  const one = (): number => d.draws.int(low, high);
  return count === 1 || d.draws.chance(0.6) ? one() : Array.from({ length: count }, one);
};

/** Draws [batch, channels, …] with `rank` spatial dimensions; the batch may be missing or 0. */
export function volume(d: Draft, channels: number, rank: number, least = 1, most = 5): number[] {
  const { draws } = d;
  const space = Array.from({ length: rank }, () => draws.int(least, most));
  return [
    ...(draws.chance(0.2) ? [] : [draws.chance(0.06) ? d.size() : draws.int(1, 2)]),
    channels,
    ...space,
  ];
}

function biasOf(d: Draft, outs: number, dtype: ReturnType<Draft['floatType']>): Ref | null {
  return d.draws.chance(0.4)
    ? null
    : d.tensor([outs + Number(d.draws.chance(0.03))], { dtype, domain: 'finite' });
}

function conv3d(d: Draft): void {
  const { draws } = d;
  const groups = draws.pick([1, 1, 2]);
  const [ins, outs] = [draws.int(1, 2), draws.int(1, 2)];
  const dtype = d.floatType();
  const shape = volume(d, ins * groups + Number(draws.chance(0.03)), 3, 1, 4);
  const x = d.tensor(shape, { dtype, domain: 'finite' });
  const kernel = Array.from({ length: 3 }, () => draws.int(1, 2));
  const w = d.tensor([outs * groups, ins, ...kernel], { dtype, domain: 'finite' });
  const b = biasOf(d, outs * groups, dtype);
  const options = {
    ...maybe(d, 0.3, 'stride', () => several(d, 3, 1, 2)),
    ...maybe(d, 0.5, 'padding', () =>
      draws.pick<() => Arg>([() => several(d, 3, 0, 1), () => 'same', () => 'valid'])(),
    ),
    ...maybe(d, 0.3, 'dilation', () => several(d, 3, 1, 2)),
    ...(groups > 1 ? { groups } : {}),
  };
  d.call('conv3d', x, w, b, optionsOrNothing(options));
}

export function convTranspose(rank: 1 | 2 | 3) {
  return (d: Draft): void => {
    const { draws } = d;
    const groups = draws.pick([1, 1, 2, 3]);
    const [ins, outs] = [draws.int(1, 2), draws.int(1, 2)];
    const dtype = d.floatType();
    const weightType = d.beside(dtype, ['float64'], 0.03);
    const shape = volume(d, ins * groups + Number(draws.chance(0.03)), rank, 1, rank === 3 ? 3 : 5);
    const x = d.tensor(shape, { dtype, domain: 'finite' });
    const kernel = Array.from({ length: rank }, () => draws.int(1, rank === 3 ? 2 : 3));
    const w = d.tensor([ins * groups, outs, ...kernel], { dtype: weightType, domain: 'finite' });
    const b = biasOf(d, outs * groups, dtype);
    const options: Options = {
      ...maybe(d, 0.6, 'stride', () => several(d, rank, 1, 3)),
      ...maybe(d, 0.4, 'padding', () => several(d, rank, 0, 2)),
      ...maybe(d, 0.4, 'outputPadding', () => several(d, rank, 0, 2)),
      ...maybe(d, 0.3, 'dilation', () => several(d, rank, 1, 3)),
      ...(groups > 1 ? { groups } : {}),
    };
    const at = (name: string, i: number, none: number): number => {
      const value = options[name] ?? none;
      return (Array.isArray(value) ? value[i] : value) as number;
    };
    const sizes = kernel.map((size, i) => {
      const span = (shape.at(i - rank)! - 1) * at('stride', i, 1) + at('dilation', i, 1) * (size - 1) + 1;
      return span - 2 * at('padding', i, 0) + at('outputPadding', i, 0);
    });
    // PyTorch refuses such a result, except where oneDNN computes it.
    if (sizes.includes(0)) d.tags.add('output of size 0');
    d.call(`convTranspose${rank}d`, x, w, b, optionsOrNothing(options));
  };
}

function pad(d: Draft): void {
  const { draws } = d;
  const mode = draws.pick(['constant', 'constant', 'reflect', 'replicate', 'circular'] as const);
  const dtype = d.anyType();
  if (mode === 'constant') {
    const shape = d.shape(0, 4);
    const count = draws.int(0, shape.length + Number(draws.chance(0.05)));
    const sizes = Array.from({ length: 2 * count + Number(draws.chance(0.03)) }, () => draws.int(-1, 2));
    const value = maybe(d, 0.6, 'value', () => draws.pick(dtype === 'uint8' ? [0, 1, 200] : [0, 1, -3, 1.5]));
    d.call('pad', d.tensor(shape, { dtype }), sizes, optionsOrNothing(value));
    return;
  }
  const rank = draws.int(1, 3);
  const shape = volume(d, draws.int(1, 2), rank, 2, 4);
  const sizes = Array.from({ length: 2 * rank }, () =>
    // With sizes below 0, mode 'circular' of PyTorch sometimes returns memory that nothing has written.
    mode === 'circular' ? draws.int(0, 3) : draws.chance(0.06) ? draws.int(-2, 5) : draws.int(-1, 2),
  );
  // Backward of PyTorch returns memory that nothing has written for a result without elements.
  const isEmpty = Array.from({ length: rank }, (_, i) => i).some(
    (i) => shape.at(-1 - i)! + sizes[2 * i]! + sizes[2 * i + 1]! === 0,
  );
  d.call('pad', d.tensor(shape, { dtype, grad: isFloat(dtype) && !isEmpty }), sizes, { mode });
}

/** Draws a weight and a bias for channels; they may have another dtype. */
function perChannel(d: Draft, channels: number, dtype: ReturnType<Draft['floatType']>): Options {
  const one = (): Ref =>
    d.tensor([channels + Number(d.draws.chance(0.02))], {
      dtype: d.draws.chance(0.9) ? dtype : 'float32',
      domain: 'finite',
    });
  return { ...maybe(d, 0.6, 'weight', one), ...maybe(d, 0.6, 'bias', one) };
}

function groupNorm(d: Draft): void {
  const { draws } = d;
  const groups = draws.int(1, 3);
  const dtype = d.floatType();
  const channels = groups * draws.int(1, 2) + Number(draws.chance(0.03));
  const rest = draws.pick([[], [3], [2, 2], [1], [2, 1, 2]]);
  const x = d.tensor([draws.chance(0.06) ? d.size() : draws.int(1, 3), channels, ...rest], {
    dtype,
    domain: draws.chance(0.9) ? 'finite' : 'special',
  });
  const options: Options = { ...perChannel(d, channels, dtype), ...maybe(d, 0.3, 'eps', () => 0.25) };
  if ('bias' in options && !('weight' in options)) d.tags.add('bias without weight');
  d.call('groupNorm', x, groups, optionsOrNothing(options));
}

function instanceNorm(d: Draft): void {
  const { draws } = d;
  const channels = draws.int(1, 3);
  const dtype = d.floatType();
  const rest = draws.pick([[3], [2, 2], [1], [2, 1, 2], [4], [2, 3]]);
  const x = d.tensor([draws.int(1, 3), channels, ...rest], { dtype, domain: 'finite' });
  const own = (domain: 'real' | 'positive'): Ref =>
    d.tensor([channels], { dtype, domain, grad: false, views: false });
  const [mean, variance] = draws.chance(0.6) ? [own('real'), own('positive')] : [null, null];
  const options = {
    ...perChannel(d, channels, dtype),
    ...maybe(d, 0.3, 'useInputStats', () => false),
    ...maybe(d, 0.4, 'momentum', () => draws.pick([0, 0.5, 1])),
    ...maybe(d, 0.3, 'eps', () => 0.25),
  };
  d.call('instanceNorm', x, mean, variance, optionsOrNothing(options));
}

function localResponseNorm(d: Draft): void {
  const { draws } = d;
  const dtype = d.floatType();
  const shape = [draws.int(1, 2), draws.int(1, 4), ...draws.pick([[3], [2, 2], [1, 2, 2], [], [0]])];
  const options = {
    ...maybe(d, 0.5, 'alpha', () => 0.5),
    ...maybe(d, 0.5, 'beta', () => 0.5),
    ...maybe(d, 0.5, 'k', () => 2),
  };
  d.call(
    'localResponseNorm',
    d.tensor(shape, { dtype, domain: 'finite' }),
    draws.int(1, 4),
    optionsOrNothing(options),
  );
}

/** Draws sizes or scale factors for `rank` dimensions. */
export function resized(d: Draft, rank: number): Options {
  const { draws } = d;
  if (draws.chance(0.5)) return { size: several(d, rank, 1, 7) };
  const one = (): number => draws.pick([0.5, 1, 1.5, 2, 2, 3, 0.7, 1.3, 2.6]);
  return {
    scaleFactor: draws.chance(0.6) ? one() : Array.from({ length: rank }, one),
    ...maybe(d, 0.3, 'recomputeScaleFactor', () => true),
  };
}

/** Tells whether a scale factor that is not 1 or 2 keeps or doubles a size. */
function isNearlyWhole(space: readonly number[], { scaleFactor, recomputeScaleFactor }: Options): boolean {
  if (scaleFactor === undefined || recomputeScaleFactor) return false;
  return space.some((size, i) => {
    const factor = (Array.isArray(scaleFactor) ? scaleFactor[i] : scaleFactor) as number;
    const out = Math.floor(size * factor);
    return (out === size || out === 2 * size) && out !== size * factor;
  });
}

/** Adds the tags of what an antialiased plane may differ in. */
export function tagAntialiased(d: Draft, space: readonly number[], sizes: Options): void {
  d.tags.add('antialiased');
  if (isNearlyWhole(space, sizes)) d.tags.add('size nearly kept');
  const last = (value: unknown): number => (Array.isArray(value) ? value.at(-1) : value) as number;
  const width = 'size' in sizes ? last(sizes.size) : Math.floor(space.at(-1)! * last(sizes.scaleFactor));
  if (width === 1) d.tags.add('width 1');
}

function interpolate(d: Draft): void {
  const { draws } = d;
  const mode = draws.pick([
    'nearest',
    'nearest-exact',
    'linear',
    'bilinear',
    'bilinear',
    'trilinear',
    'bicubic',
    'area',
  ]);
  const dtype = d.floatType();
  const isNearest = mode.startsWith('nearest');
  const ranks: Readonly<Record<string, number>> = { linear: 1, bilinear: 2, bicubic: 2, trilinear: 3 };
  const rank = ranks[mode] ?? draws.int(1, isNearest ? 3 : 2);
  const space = Array.from({ length: rank }, () => draws.int(1, 5));
  const shape = [draws.chance(0.05) ? d.size() : draws.int(1, 2), draws.int(1, 2), ...space];
  const x = d.tensor(shape, { dtype, domain: draws.chance(0.9) ? 'finite' : 'special' });
  const isSmooth = mode in ranks;
  const sizes = resized(d, rank);
  if (mode === 'area' && space.includes(1) && 'scaleFactor' in sizes) d.tags.add('output of size 0');
  if (mode === 'nearest' && rank !== 2 && isNearlyWhole(space, sizes))
    d.tags.add('size nearly kept or doubled');
  const options: Options = {
    ...sizes,
    ...(mode === 'nearest' && draws.chance(0.5) ? {} : { mode }),
    ...maybe(d, isSmooth ? 0.5 : 0.03, 'alignCorners', () => draws.chance(0.8)),
    ...maybe(d, rank === 2 && isSmooth ? 0.5 : 0.03, 'antialias', () => draws.chance(0.8)),
  };
  if (options.antialias) tagAntialiased(d, space, sizes);
  d.call('interpolate', x, options);
}

/** Draws the window of a pool over signals: the arguments after the input. */
export function rowPool(d: Draft, isMax: boolean): [size: Arg, options: Arg] {
  const { draws } = d;
  const options = {
    ...maybe(d, 0.5, 'stride', () => draws.int(1, 3)),
    ...maybe(d, 0.4, 'padding', () => draws.int(0, 1)),
    ...maybe(d, 0.3, 'ceilMode', () => true),
    ...(isMax
      ? maybe(d, 0.3, 'dilation', () => draws.int(1, 2))
      : maybe(d, 0.3, 'countIncludePad', () => false)),
  };
  return [draws.int(1, 3), optionsOrNothing(options)];
}

const pooled = ['finite', 'finite', 'coarse', 'special'] as const;

function pool1d(op: string, isMax: boolean) {
  return (d: Draft): void => {
    const dtype = d.floatType();
    const shape = volume(d, d.draws.int(1, 2), 1, 2, 6);
    d.call(op, d.tensor(shape, { dtype, domain: d.draws.pick(pooled) }), ...rowPool(d, isMax));
  };
}

function adaptive(op: string, rank: 1 | 2) {
  return (d: Draft): void => {
    const { draws } = d;
    const dtype = d.floatType();
    const x = d.tensor(volume(d, draws.int(1, 2), rank, 1, 6), { dtype, domain: draws.pick(pooled) });
    const one = (): Arg => (draws.chance(0.15) ? null : draws.int(1, 5));
    d.call(op, x, rank === 1 || draws.chance(0.4) ? draws.int(1, 5) : [one(), one()]);
  };
}

function withIndices(d: Draft): void {
  const dtype = d.floatType();
  const x = d.tensor(volume(d, d.draws.int(1, 2), 2, 3, 5), { dtype, domain: d.draws.pick(pooled) });
  const options = {
    ...maybe(d, 0.5, 'stride', () => several(d, 2, 1, 2)),
    ...maybe(d, 0.4, 'padding', () => 1),
    ...maybe(d, 0.3, 'ceilMode', () => true),
  };
  d.call('maxPool2dWithIndices', x, several(d, 2, 2, 3), optionsOrNothing(options));
}

function unpool(d: Draft): void {
  const { draws } = d;
  const dtype = d.floatType();
  const shape = volume(d, draws.int(1, 2), 2, 1, 3);
  const x = d.tensor(shape, { dtype });
  const [high, wide] = shape.slice(-2) as [number, number];
  const indexType = d.beside('int64', ['int32'], 0.05);
  // Every plane has other places, in its own order, so that none is written twice.
  const planes = shape.slice(0, -2).reduce((a, b) => a * b, 1);
  const places = Array.from({ length: planes }, () =>
    draws.shuffled(Array.from({ length: 4 * high * wide }, (_, i) => i)).slice(0, high * wide),
  );
  const indices = d.given(places.flat(), shape, indexType, false);
  const more = maybe(d, 0.4, 'outputSize', () => [2 * high + draws.int(0, 2), 2 * wide + draws.int(0, 1)]);
  d.call('maxUnpool2d', x, indices, 2, optionsOrNothing(more));
}

function lpPool(rank: 1 | 2) {
  return (d: Draft): void => {
    const { draws } = d;
    const dtype = draws.pick(['float32', 'float64'] as const);
    const x = d.tensor(volume(d, draws.int(1, 2), rank, 2, 5), { dtype, domain: 'positive' });
    const options = {
      ...maybe(d, 0.5, 'stride', () => several(d, rank, 1, 2)),
      ...maybe(d, 0.3, 'ceilMode', () => true),
    };
    d.call(
      `lpPool${rank}d`,
      x,
      draws.pick([1, 2, 3, 1.5]),
      several(d, rank, 1, 2),
      optionsOrNothing(options),
    );
  };
}

const columnOptions = (d: Draft): Options => ({
  ...maybe(d, 0.3, 'dilation', () => several(d, 2, 1, 2)),
  ...maybe(d, 0.4, 'padding', () => several(d, 2, 0, 2)),
  ...maybe(d, 0.5, 'stride', () => several(d, 2, 1, 3)),
});

function im2col(d: Draft): void {
  const dtype = d.floatType();
  const x = d.tensor(volume(d, d.draws.int(1, 2), 2, 1, 4), { dtype });
  d.call('im2col', x, several(d, 2, 1, 3), optionsOrNothing(columnOptions(d)));
}

function col2im(d: Draft): void {
  const { draws } = d;
  const dtype = d.floatType();
  const [size, kernel] = [
    [draws.int(2, 5), draws.int(2, 5)],
    [draws.int(1, 2), draws.int(1, 3)],
  ];
  const options = columnOptions(d);
  const at = (name: string, i: number, none: number): number => {
    const value = options[name] ?? none;
    return (Array.isArray(value) ? value[i] : value) as number;
  };
  const counts = size.map((each, i) => {
    const free = each + 2 * at('padding', i, 0) - at('dilation', i, 1) * (kernel[i]! - 1) - 1;
    return Math.max(0, Math.floor(free / at('stride', i, 1)) + 1);
  });
  const rows = draws.int(1, 2) * kernel[0]! * kernel[1]! + Number(draws.chance(0.05));
  const columns = counts[0]! * counts[1]! + Number(draws.chance(0.05));
  const shape = [...(draws.chance(0.3) ? [] : [draws.int(1, 2)]), rows, columns];
  d.call('col2im', d.tensor(shape, { dtype, domain: 'finite' }), size, kernel, optionsOrNothing(options));
}

function shuffle(op: 'pixelShuffle' | 'pixelUnshuffle' | 'channelShuffle') {
  return (d: Draft): void => {
    const { draws } = d;
    const dtype = d.anyType();
    const factor = draws.int(1, 3);
    const wrong = Number(draws.chance(0.08));
    const size = (): number => (op === 'pixelUnshuffle' ? factor * draws.int(1, 2) : draws.int(1, 3));
    const channels = { pixelShuffle: factor ** 2, pixelUnshuffle: 1, channelShuffle: factor }[op];
    const front = op === 'channelShuffle' ? [draws.int(1, 2)] : d.shape(0, 2);
    const shape = [...front, channels * draws.int(1, 2) + wrong, size() + wrong, size()];
    d.call(op, d.tensor(shape, { dtype }), factor);
  };
}

export function dropping(op: string, ranks: readonly number[]) {
  return (d: Draft): void => {
    const dtype = d.floatType();
    const x = d.tensor(
      Array.from({ length: d.draws.pick(ranks) }, () => d.draws.int(1, 3)),
      { dtype, domain: 'finite' },
    );
    const isOff = d.draws.chance(0.3);
    const p = isOff ? 0.5 : d.draws.pick([0, 1, 0.5, 0.5, -0.1]);
    if (p === 0.5 && !isOff) d.compares = 'kind';
    d.call(op, x, p, isOff ? { training: false } : nothing);
  };
}

const modes = ['nearest', 'bicubic'] as const;

function gridSample(d: Draft): void {
  const { draws } = d;
  const dtype = draws.pick(['float32', 'float32', 'float64'] as const);
  const batch = draws.int(1, 2);
  const axes = draws.chance(0.7) ? 2 : 3;
  const space = Array.from({ length: axes }, () => draws.int(1, 4));
  const x = d.tensor([batch, draws.int(1, 2), ...space], { dtype, domain: 'real' });
  // Numbers that are no multiples of ½, because gradients jump where a position meets an element.
  const spots = [-1.37, -0.83, -0.61, -0.29, 0.13, 0.37, 0.59, 0.71, 0.93, 1.21, 2.47, -3.19];
  const shape = [batch, ...space.map(() => draws.int(1, 3)), axes];
  const values = Array.from({ length: countOf(shape) }, () => Math.fround(draws.pick(spots)));
  const grid = d.given(values, shape, dtype, draws.chance(0.8));
  const options = {
    ...maybe(d, 0.5, 'mode', () => draws.pick(axes === 2 || draws.chance(0.1) ? modes : ['nearest'])),
    ...maybe(d, 0.6, 'paddingMode', () => draws.pick(['border', 'reflection', 'zeros'])),
    ...maybe(d, 0.5, 'alignCorners', () => true),
  };
  d.call('gridSample', x, grid, optionsOrNothing(options));
}

function affineGrid(d: Draft): void {
  const { draws } = d;
  const dtype = draws.pick(['float32', 'float64'] as const);
  const batch = draws.int(1, 2);
  const axes = draws.chance(0.7) ? 2 : 3;
  const theta = d.tensor([batch, axes, axes + 1], { dtype, domain: 'real' });
  const space = Array.from({ length: axes }, () => draws.int(1, 4));
  const size = [batch + Number(draws.chance(0.05)), 1, ...space];
  d.call('affineGrid', theta, size, draws.pick<Arg>([nothing, true, false]));
}

export const spatial: Makers = {
  gridSample: { draw: gridSample, count: 48 },
  affineGrid: { draw: affineGrid, count: 14 },
  maxPool1d: { draw: pool1d('maxPool1d', true), count: 18 },
  avgPool1d: { draw: pool1d('avgPool1d', false), count: 14 },
  adaptiveAvgPool1d: { draw: adaptive('adaptiveAvgPool1d', 1), count: 10 },
  adaptiveMaxPool1d: { draw: adaptive('adaptiveMaxPool1d', 1), count: 12 },
  adaptiveMaxPool2d: { draw: adaptive('adaptiveMaxPool2d', 2), count: 20 },
  maxPool2dWithIndices: { draw: withIndices, count: 14 },
  maxUnpool2d: { draw: unpool, count: 12 },
  lpPool1d: { draw: lpPool(1), count: 10 },
  lpPool2d: { draw: lpPool(2), count: 10 },
  im2col: { draw: im2col, count: 18 },
  col2im: { draw: col2im, count: 20 },
  pixelShuffle: { draw: shuffle('pixelShuffle'), count: 14 },
  pixelUnshuffle: { draw: shuffle('pixelUnshuffle'), count: 14 },
  channelShuffle: { draw: shuffle('channelShuffle'), count: 14 },
  dropout1d: { draw: dropping('dropout1d', [2, 3]) },
  dropout2d: { draw: dropping('dropout2d', [3, 4]) },
  dropout3d: { draw: dropping('dropout3d', [4, 5]) },
  alphaDropout: { draw: dropping('alphaDropout', [1, 2, 3]) },
  interpolate: { draw: interpolate, count: 64 },
  groupNorm: { draw: groupNorm, count: 24, isUnsteady: true },
  instanceNorm: { draw: instanceNorm, count: 24, isUnsteady: true },
  localResponseNorm: { draw: localResponseNorm, count: 10 },
  conv3d: { draw: conv3d, count: 18 },
  convTranspose1d: { draw: convTranspose(1), count: 16, isUnsteady: 'halves' },
  convTranspose2d: { draw: convTranspose(2), count: 24, isUnsteady: 'halves' },
  pad: { draw: pad, count: 36 },
};
