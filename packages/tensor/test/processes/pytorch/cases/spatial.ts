// Cases of operations on planes, signals and volumes.
import type { Arg, Ref } from '../case.ts';
import { type Draft, isFloat, nothing } from '../draft.ts';
import type { Makers } from './index.ts';

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

function convTranspose(rank: 1 | 2) {
  return (d: Draft): void => {
    const { draws } = d;
    const groups = draws.pick([1, 1, 2, 3]);
    const [ins, outs] = [draws.int(1, 2), draws.int(1, 2)];
    const dtype = d.floatType();
    const weightType = d.beside(dtype, ['float64'], 0.03);
    const shape = volume(d, ins * groups + Number(draws.chance(0.03)), rank);
    const x = d.tensor(shape, { dtype, domain: 'finite' });
    const kernel = Array.from({ length: rank }, () => draws.int(1, 3));
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

function interpolate(d: Draft): void {
  const { draws } = d;
  const mode = draws.pick(['nearest', 'nearest-exact', 'linear', 'bilinear', 'bilinear', 'bicubic', 'area']);
  const dtype = d.floatType();
  const isNearest = mode.startsWith('nearest');
  const rank = mode === 'linear' ? 1 : mode.startsWith('bi') ? 2 : draws.int(1, isNearest ? 3 : 2);
  const space = Array.from({ length: rank }, () => draws.int(1, 5));
  const shape = [draws.chance(0.05) ? d.size() : draws.int(1, 2), draws.int(1, 2), ...space];
  const x = d.tensor(shape, { dtype, domain: draws.chance(0.9) ? 'finite' : 'special' });
  const isSmooth = mode.startsWith('bi') || mode === 'linear';
  d.call('interpolate', x, {
    ...resized(d, rank),
    ...(mode === 'nearest' && draws.chance(0.5) ? {} : { mode }),
    ...maybe(d, isSmooth ? 0.5 : 0.03, 'alignCorners', () => draws.chance(0.8)),
  });
}

export const spatial: Makers = {
  interpolate: { draw: interpolate, count: 48 },
  groupNorm: { draw: groupNorm, count: 24, isUnsteady: true },
  instanceNorm: { draw: instanceNorm, count: 24, isUnsteady: true },
  localResponseNorm: { draw: localResponseNorm, count: 10 },
  conv3d: { draw: conv3d, count: 18 },
  convTranspose1d: { draw: convTranspose(1), count: 16 },
  convTranspose2d: { draw: convTranspose(2), count: 24 },
  pad: { draw: pad, count: 36 },
};
