// Cases of convolutions, pooling, normalisation and dropout.
import type { Arg, Ref } from '../../case.ts';
import { type Draft, isFloat, nothing } from '../../draft.ts';
import type { Makers } from '../index.ts';

type Options = Record<string, Arg>;
const optionsOrNothing = (options: Options): Arg => (Object.keys(options).length > 0 ? options : nothing);
const maybe = (d: Draft, share: number, name: string, value: () => Arg): Options =>
  d.draws.chance(share) ? { [name]: value() } : {};

/** Draws one number or two. */
const pair = (d: Draft, low: number, high: number): Arg =>
  d.draws.chance(0.6) ? d.draws.int(low, high) : [d.draws.int(low, high), d.draws.int(low, high)];

/** Draws the shape of an image with these channels, with a batch or without. */
export function planes(d: Draft, channels: number, least = 1): number[] {
  const { draws } = d;
  const size = (): number => (draws.chance(0.03) ? d.size() : draws.int(least, 6));
  return [
    ...(draws.chance(0.15) ? [] : [draws.chance(0.06) ? d.size() : draws.int(1, 2)]),
    channels,
    size(),
    size(),
  ];
}

function conv(rank: 1 | 2) {
  return (d: Draft): void => {
    const { draws } = d;
    const groups = draws.pick([1, 1, 1, 2, 3]);
    const [ins, outs] = [draws.int(1, 2), draws.int(1, 2)];
    const dtype = d.floatType();
    const weightType = d.beside(dtype, ['float64'], 0.03);
    const shape = planes(d, ins * groups + Number(draws.chance(0.03)));
    if (rank === 1) shape.pop();
    const kernel = Array.from({ length: rank }, () => draws.int(1, 3));
    const x = d.tensor(shape, { dtype, domain: 'finite' });
    const w = d.tensor([outs * groups, ins, ...kernel], {
      dtype: weightType,
      domain: 'finite',
    });
    const b = draws.chance(0.4)
      ? null
      : d.tensor([outs * groups + Number(draws.chance(0.03))], { dtype, domain: 'finite' });
    const one = (low: number, high: number): Arg => (rank === 2 ? pair(d, low, high) : draws.int(low, high));
    const options = {
      ...maybe(d, 0.4, 'stride', () => one(draws.chance(0.04) ? 0 : 1, 3)),
      ...maybe(d, 0.4, 'padding', () =>
        draws.pick<() => Arg>([() => one(0, 2), () => 'same', () => 'valid'])(),
      ),
      ...maybe(d, 0.3, 'dilation', () => one(1, 2)),
      ...(groups > 1 ? { groups } : {}),
    };
    d.call(`conv${rank}d`, x, w, b, optionsOrNothing(options));
  };
}

/** Draws the window of a pool: the arguments after the input. */
export function poolWindow(d: Draft, isMax: boolean): [size: Arg, options: Arg] {
  const options = {
    ...maybe(d, 0.5, 'stride', () => pair(d, 1, 3)),
    ...maybe(d, 0.4, 'padding', () => pair(d, 0, d.draws.chance(0.1) ? 2 : 1)),
    ...maybe(d, 0.3, 'ceilMode', () => true),
    ...(isMax
      ? maybe(d, 0.3, 'dilation', () => pair(d, 1, 2))
      : {
          ...maybe(d, 0.3, 'countIncludePad', () => false),
          ...maybe(d, 0.15, 'divisorOverride', () => d.draws.int(1, 5)),
        }),
  };
  return [pair(d, 1, 3), optionsOrNothing(options)];
}

const pool =
  (op: string, isMax: boolean) =>
  (d: Draft): void => {
    const dtype = d.floatType();
    const x = d.tensor(planes(d, d.draws.int(1, 2), 2), {
      dtype,
      domain: d.draws.pick(['finite', 'finite', 'coarse', 'special'] as const),
    });
    d.call(op, x, ...poolWindow(d, isMax));
  };

function adaptive(d: Draft): void {
  const dtype = d.floatType();
  const x = d.tensor(planes(d, d.draws.int(1, 2)), { dtype });
  // PyTorch does not check the dtype if the result has no elements.
  const least = (): number => (isFloat(dtype) && d.draws.chance(0.05) ? 0 : 1);
  const one = (): Arg => (d.draws.chance(0.15) ? null : d.draws.int(least(), 4));
  const sizes = d.draws.chance(0.4) ? d.draws.int(1, 4) : [one(), one()];
  if (Array.isArray(sizes) && sizes.includes(0)) d.tags.add('output of size 0');
  d.call('adaptiveAvgPool2d', x, sizes);
}

function batchNorm(d: Draft): void {
  const { draws } = d;
  const channels = draws.int(1, 3);
  const rest = draws.pick([[], [3], [2, 2], [1]]);
  const dtype = d.floatType();
  const x = d.tensor([draws.chance(0.08) ? 0 : draws.int(1, 3), channels, ...rest], {
    dtype,
    domain: draws.chance(0.9) ? 'finite' : 'special',
  });
  const perChannel = (domain: 'positive' | 'real'): Ref =>
    d.tensor([channels + Number(draws.chance(0.02))], { dtype, domain });
  const [mean, variance] = draws.chance(0.6)
    ? [
        d.tensor([channels], { dtype, domain: 'real', grad: false, views: false }),
        d.tensor([channels], { dtype, domain: 'positive', grad: false, views: false }),
      ]
    : [null, null];
  const options = {
    ...maybe(d, 0.6, 'weight', () => perChannel('real')),
    ...maybe(d, 0.6, 'bias', () => perChannel('real')),
    ...maybe(d, 0.65, 'training', () => true),
    ...maybe(d, 0.4, 'momentum', () => draws.pick([0, 0.5, 1])),
    ...maybe(d, 0.3, 'eps', () => 0.25),
  };
  d.call('batchNorm', x, mean, variance, optionsOrNothing(options));
}

/** Draws an input of shape `whole`, and the shape of its last dimensions, which is wrong in a few cases. */
function normed(d: Draft): {
  x: Ref;
  shape: number[];
  whole: number[];
  dtype: ReturnType<Draft['floatType']>;
} {
  const dtype = d.floatType();
  const shape = d.shape(1, 2);
  const whole = [...d.shape(0, 2), ...shape];
  const x = d.tensor(whole, { dtype, domain: d.draws.chance(0.85) ? 'finite' : 'special' });
  if (d.draws.chance(0.04)) shape[0]! += 1;
  return { x, shape, whole, dtype };
}

const affine = (d: Draft, name: string, shape: number[], dtype: ReturnType<Draft['floatType']>): Options =>
  maybe(d, 0.6, name, () =>
    d.tensor(shape, { dtype: d.draws.chance(0.9) ? dtype : 'float32', domain: 'finite' }),
  );

function layerNorm(d: Draft): void {
  const { x, shape, dtype } = normed(d);
  const options = {
    ...affine(d, 'weight', shape, dtype),
    ...affine(d, 'bias', shape, dtype),
    ...maybe(d, 0.3, 'eps', () => 0.25),
  };
  d.call('layerNorm', x, shape, optionsOrNothing(options));
}

function rmsNorm(d: Draft): void {
  const { x, shape, dtype } = normed(d);
  d.call(
    'rmsNorm',
    x,
    shape,
    optionsOrNothing({
      ...affine(d, 'weight', shape, dtype),
      ...maybe(d, 0.5, 'eps', () => d.draws.pick([0.25, 1e-6])),
    }),
  );
}

function addLayerNorm(d: Draft): void {
  const { x, shape, whole, dtype } = normed(d);
  const residual = d.tensor(whole, { dtype, domain: 'finite' });
  d.call(
    'addLayerNorm',
    x,
    residual,
    shape,
    optionsOrNothing({ ...affine(d, 'weight', shape, dtype), ...affine(d, 'bias', shape, dtype) }),
  );
}

function dropout(d: Draft): void {
  const dtype = d.floatType();
  const x = d.tensor(d.shape(), { dtype });
  const isOff = d.draws.chance(0.3);
  const p = isOff ? 0.5 : d.draws.pick([0, 1, 0, 1, 0.5, -0.1, 1.5]);
  if (p === 0.5 && !isOff) d.compares = 'kind';
  d.call('dropout', x, p, isOff ? { training: false } : nothing);
}

export const layers: Makers = {
  conv1d: { draw: conv(1), count: 18 },
  conv2d: { draw: conv(2), count: 30 },
  maxPool2d: { draw: pool('maxPool2d', true), count: 24 },
  avgPool2d: { draw: pool('avgPool2d', false), count: 24 },
  adaptiveAvgPool2d: { draw: adaptive, count: 14 },
  batchNorm: { draw: batchNorm, count: 24, isUnsteady: true },
  layerNorm: { draw: layerNorm, count: 24, isUnsteady: true },
  rmsNorm: { draw: rmsNorm, count: 18, isUnsteady: true },
  addLayerNorm: { draw: addLayerNorm, count: 14, isUnsteady: true },
  dropout: { draw: dropout },
};
