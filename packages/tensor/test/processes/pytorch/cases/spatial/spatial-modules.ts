// Cases of the layers for planes, signals and volumes.
import type { Arg, Ref } from '../../case.ts';
import { type Draft, nothing } from '../../draft.ts';
import type { Makers } from '../index.ts';
import { maybe, optionsOrNothing, rowPool, several, volume } from './spatial.ts';

type State = Record<string, Ref>;

/** Draws a parameter: dense float32, as modules hold it. */
const parameter = (d: Draft, ...shape: number[]): Ref => d.tensor(shape, { domain: 'finite', views: false });

const input = (d: Draft, shape: readonly number[]): Ref => d.tensor(shape, { domain: 'finite' });

const modes = ['zeros', 'reflect', 'replicate', 'circular'];

/** Draws a convolution layer whose padding mode is often not 'zeros'. */
function conv(rank: 1 | 2 | 3) {
  return (d: Draft): void => {
    const { draws } = d;
    const groups = draws.pick([1, 2]);
    const [ins, outs] = [groups * draws.int(1, 2), groups * draws.int(1, 2)];
    const x = input(d, volume(d, ins, rank, 2, 4));
    const kernel = Array.from({ length: rank }, () => draws.int(1, 2));
    const hasBias = draws.chance(0.6);
    const options = {
      ...(groups > 1 ? { groups } : {}),
      ...(hasBias ? {} : { bias: false }),
      ...maybe(d, 0.8, 'padding', () => draws.pick<Arg>(['same', several(d, rank, 0, 1), 1, 'valid'])),
      ...maybe(d, 0.7, 'paddingMode', () => draws.pick(modes)),
      ...maybe(d, 0.3, 'stride', () => several(d, rank, 1, 2)),
      ...maybe(d, 0.2, 'dilation', () => several(d, rank, 1, 2)),
    };
    const state: State = {
      weight: parameter(d, outs, ins / groups, ...kernel),
      ...(hasBias ? { bias: parameter(d, outs) } : {}),
    };
    const size = rank === 1 ? kernel[0]! : kernel;
    d.callModule(`Conv${rank}d`, [ins, outs, size, optionsOrNothing(options)], state, [x]);
  };
}

export function convTranspose(rank: 1 | 2 | 3) {
  return (d: Draft): void => {
    const { draws } = d;
    const groups = draws.pick([1, 2]);
    const [ins, outs] = [groups * draws.int(1, 2), groups * draws.int(1, 2)];
    const x = input(d, volume(d, ins, rank, 1, rank === 3 ? 2 : 5));
    const hasBias = draws.chance(0.6);
    const options = {
      stride: 2,
      ...maybe(d, 0.5, 'padding', () => 1),
      ...maybe(d, 0.5, 'outputPadding', () => 1),
      ...(groups > 1 ? { groups } : {}),
      ...(hasBias ? {} : { bias: false }),
    };
    const state: State = {
      weight: parameter(d, ins, outs / groups, ...new Array<number>(rank).fill(3)),
      ...(hasBias ? { bias: parameter(d, outs) } : {}),
    };
    d.callModule(`ConvTranspose${rank}d`, [ins, outs, 3, options], state, [x]);
  };
}

function padding(kind: string, rank: 1 | 2 | 3) {
  return {
    draw: (d: Draft): void => {
      const sizes = d.draws.chance(0.4)
        ? 1
        : Array.from({ length: 2 * rank }, () => d.draws.int(kind === 'CircularPad' ? 0 : -1, 2));
      const own = kind === 'ConstantPad' ? [sizes, d.draws.pick([0, 1.5, -2])] : [sizes];
      d.callModule(`${kind}${rank}d`, own, {}, [input(d, volume(d, 2, rank, 3, 4))]);
    },
    count: 3,
  };
}

const kinds = ['ZeroPad', 'ConstantPad', 'ReflectionPad', 'ReplicationPad', 'CircularPad'];

function groupNorm(d: Draft): void {
  const groups = d.draws.int(1, 2);
  const channels = groups * d.draws.int(1, 2);
  const isAffine = d.draws.chance(0.7);
  const state: State = isAffine ? { weight: parameter(d, channels), bias: parameter(d, channels) } : {};
  const x = input(d, [d.draws.int(1, 2), channels, ...d.draws.pick([[3], [2, 2]])]);
  d.callModule('GroupNorm', [groups, channels, isAffine ? { eps: 0.1 } : { affine: false }], state, [x]);
}

function instanceNorm(rank: 1 | 2 | 3) {
  return (d: Draft): void => {
    const { draws } = d;
    const channels = draws.int(1, 3);
    const x = input(d, volume(d, channels, rank, 2, 3));
    const [isAffine, tracks] = [draws.chance(0.6), draws.chance(0.6)];
    const options = {
      ...(isAffine ? { affine: true } : {}),
      ...(tracks ? { trackRunningStats: true } : {}),
      ...maybe(d, 0.4, 'momentum', () => draws.pick([null, 0.3])),
    };
    const state: State = {
      ...(isAffine ? { weight: parameter(d, channels), bias: parameter(d, channels) } : {}),
      ...(tracks
        ? {
            running_mean: d.tensor([channels], { domain: 'real', grad: false, views: false }),
            running_var: d.tensor([channels], { domain: 'positive', grad: false, views: false }),
            num_batches_tracked: d.given([draws.int(0, 3)], [], 'int64'),
          }
        : {}),
    };
    d.callModule(
      `InstanceNorm${rank}d`,
      [channels, optionsOrNothing(options)],
      state,
      [x],
      draws.chance(0.6),
    );
  };
}

const upsample = (name: string, own: Record<string, Arg>) => ({
  draw: (d: Draft): void =>
    d.callModule(
      name,
      [{ ...d.draws.pick<Record<string, Arg>>([{ size: 5 }, { scaleFactor: 2 }]), ...own }],
      {},
      [input(d, [1, 2, d.draws.int(2, 3), d.draws.int(1, 4)])],
    ),
  count: 3,
});

/** Makes cases of a layer without state. `own` draws arguments of its constructor, and the shape of its input. */
export const stateless = (
  name: string,
  own: (d: Draft) => readonly [args: readonly Arg[], shape: readonly number[]],
  training = true,
) => ({
  draw: (d: Draft): void => {
    const [args, shape] = own(d);
    d.callModule(name, args, {}, [input(d, shape)], training);
  },
  count: 3,
});

function maxUnpool(d: Draft): void {
  const x = input(d, [1, 2, 2]);
  d.callModule('MaxUnpool2d', [[2, 2], nothing], {}, [x, d.given([0, 3, 9, 10], [1, 2, 2], 'int64', false)]);
}

export const spatialModules: Makers = {
  'nn.MaxPool1d': stateless('MaxPool1d', (d) => [rowPool(d, true), volume(d, 2, 1, 3, 6)]),
  'nn.AvgPool1d': stateless('AvgPool1d', (d) => [rowPool(d, false), volume(d, 2, 1, 3, 6)]),
  'nn.AdaptiveAvgPool1d': stateless('AdaptiveAvgPool1d', (d) => [[d.draws.int(1, 4)], volume(d, 2, 1)]),
  'nn.AdaptiveMaxPool1d': stateless('AdaptiveMaxPool1d', (d) => [[d.draws.int(1, 4)], volume(d, 2, 1)]),
  'nn.AdaptiveMaxPool2d': stateless('AdaptiveMaxPool2d', (d) => [
    [[d.draws.int(1, 4), null]],
    volume(d, 2, 2),
  ]),
  'nn.MaxUnpool2d': { draw: maxUnpool, count: 2 },
  'nn.LPPool1d': stateless('LPPool1d', (d) => [[1, d.draws.int(1, 2), { stride: 1 }], volume(d, 2, 1, 2)]),
  'nn.LPPool2d': stateless('LPPool2d', (d) => [[1, d.draws.int(1, 2), { stride: 1 }], volume(d, 2, 2, 2)]),
  'nn.Unfold': stateless('Unfold', (d) => [[[2, 1], { padding: d.draws.int(0, 1) }], volume(d, 2, 2, 2)]),
  'nn.Fold': stateless('Fold', (d) => [
    [[3, 2], 2, { padding: 1 }],
    [d.draws.int(1, 2), 4, 12],
  ]),
  'nn.PixelShuffle': stateless('PixelShuffle', (d) => [[2], volume(d, 4, 2)]),
  'nn.PixelUnshuffle': stateless('PixelUnshuffle', () => [[2], [1, 2, 4, 2]]),
  'nn.ChannelShuffle': stateless('ChannelShuffle', () => [[2], [2, 4, 2, 3]]),
  'nn.Unflatten': stateless('Unflatten', (d) => [
    [
      1,
      d.draws.pick([
        [2, 3],
        [-1, 2],
      ]),
    ],
    [2, 6, 2],
  ]),
  'nn.Dropout1d': stateless('Dropout1d', (d) => [[1], volume(d, 2, 1)]),
  'nn.Dropout2d': stateless('Dropout2d', () => [[0.3], [2, 2, 2, 2]], false),
  'nn.Dropout3d': stateless('Dropout3d', (d) => [[1], volume(d, 2, 3, 1, 2)]),
  'nn.AlphaDropout': stateless('AlphaDropout', (d) => [[0.3], volume(d, 2, 1)], false),
  'nn.Upsample': upsample('Upsample', { mode: 'bilinear' }),
  'nn.UpsamplingNearest2d': upsample('UpsamplingNearest2d', {}),
  'nn.UpsamplingBilinear2d': upsample('UpsamplingBilinear2d', {}),
  'nn.GroupNorm': { draw: groupNorm, count: 6, isUnsteady: true },
  ...Object.fromEntries(
    ([1, 2, 3] as const).map((rank) => [
      `nn.InstanceNorm${rank}d`,
      { draw: instanceNorm(rank), count: 7, isUnsteady: true },
    ]),
  ),
  'nn.LocalResponseNorm': {
    draw: (d) =>
      d.callModule('LocalResponseNorm', [d.draws.int(1, 3), d.draws.pick<Arg>([{ k: 2 }, {}])], {}, [
        input(d, volume(d, 3, 2, 2, 3)),
      ]),
    count: 3,
  },
  'nn.Conv1d': { draw: conv(1), count: 12 },
  'nn.Conv3d': { draw: conv(3), count: 10 },
  'nn.ConvTranspose1d': { draw: convTranspose(1), count: 5, isUnsteady: 'halves' },
  'nn.ConvTranspose2d': { draw: convTranspose(2), count: 6, isUnsteady: 'halves' },
  ...Object.fromEntries(
    kinds.flatMap((kind) => ([1, 2, 3] as const).map((rank) => [`nn.${kind}${rank}d`, padding(kind, rank)])),
  ),
};
