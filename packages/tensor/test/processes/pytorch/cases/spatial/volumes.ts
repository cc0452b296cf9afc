// Cases of operations on volumes, of pooling with indices, and of what puts elements back.
import type { Arg } from '../../case.ts';
import { type Draft, nothing } from '../../draft.ts';
import type { Makers } from '../index.ts';
import { convTranspose, dropping, maybe, optionsOrNothing, several, volume } from './spatial.ts';
import { convTranspose as convTransposeLayer, stateless } from './spatial-modules.ts';

const pooled = ['finite', 'finite', 'coarse', 'special'] as const;

function pool3d(op: string, isMax: boolean) {
  return (d: Draft): void => {
    const { draws } = d;
    const dtype = d.floatType();
    const shape = volume(d, draws.int(1, 2), 3, draws.chance(0.05) ? 1 : 2, 4);
    const x = d.tensor(shape, { dtype, domain: draws.pick(pooled) });
    const options = {
      ...maybe(d, 0.5, 'stride', () => several(d, 3, 1, 2)),
      ...maybe(d, 0.4, 'padding', () => several(d, 3, 0, 1)),
      ...maybe(d, 0.3, 'ceilMode', () => true),
      ...(isMax
        ? maybe(d, 0.3, 'dilation', () => several(d, 3, 1, 2))
        : { ...maybe(d, 0.3, 'countIncludePad', () => false), ...maybe(d, 0.2, 'divisorOverride', () => 3) }),
    };
    d.call(op, x, several(d, 3, 1, 2), optionsOrNothing(options));
  };
}

function adaptive(op: string) {
  return (d: Draft): void => {
    const { draws } = d;
    const dtype = d.floatType();
    const x = d.tensor(volume(d, draws.int(1, 2), 3, 1, 4), { dtype, domain: draws.pick(pooled) });
    const one = (): Arg => (draws.chance(0.15) ? null : draws.int(1, 4));
    d.call(op, x, draws.chance(0.4) ? draws.int(1, 4) : [one(), one(), one()]);
  };
}

function withIndices1d(d: Draft): void {
  const { draws } = d;
  const dtype = d.floatType();
  const x = d.tensor(volume(d, draws.int(1, 2), 1, 3, 6), { dtype, domain: draws.pick(pooled) });
  const options = { ...maybe(d, 0.5, 'stride', () => draws.int(1, 2)), ...maybe(d, 0.4, 'padding', () => 1) };
  d.call('maxPool1dWithIndices', x, draws.int(2, 3), optionsOrNothing(options));
}

function unpool(rank: 1 | 3) {
  return (d: Draft): void => {
    const { draws } = d;
    const dtype = d.floatType();
    const shape = volume(d, draws.int(1, 2), rank, 1, rank === 1 ? 4 : 2);
    const x = d.tensor(shape, { dtype });
    const space = shape.slice(-rank);
    const count = space.reduce((a, b) => a * b, 1);
    const planes = shape.slice(0, -rank).reduce((a, b) => a * b, 1);
    const places = Array.from({ length: planes }, () =>
      draws.shuffled(Array.from({ length: 2 ** rank * count }, (_, i) => i)).slice(0, count),
    );
    const indices = d.given(places.flat(), shape, d.beside('int64', ['int32'], 0.05), false);
    const more = maybe(d, 0.4, 'outputSize', () => space.map((size) => 2 * size + draws.int(0, 1)));
    d.call(`maxUnpool${rank}d`, x, indices, 2, optionsOrNothing(more));
  };
}

function lpPool3d(d: Draft): void {
  const { draws } = d;
  const dtype = draws.pick(['float32', 'float64'] as const);
  const x = d.tensor(volume(d, draws.int(1, 2), 3, 2, 3), { dtype, domain: 'positive' });
  const options = {
    ...maybe(d, 0.5, 'stride', () => several(d, 3, 1, 2)),
    ...maybe(d, 0.3, 'ceilMode', () => true),
  };
  d.call('lpPool3d', x, draws.pick([1, 2, 3, 1.5]), several(d, 3, 1, 2), optionsOrNothing(options));
}

function unpoolLayer(rank: 1 | 3) {
  return (d: Draft): void => {
    const shape = rank === 1 ? [2, 2] : [1, 2, 1, 1];
    const x = d.tensor(shape, { domain: 'finite' });
    const places = rank === 1 ? [0, 3, 1, 2] : [0, 15];
    d.callModule(`MaxUnpool${rank}d`, [2, nothing], {}, [x, d.given(places, shape, 'int64', false)]);
  };
}

export const volumes: Makers = {
  convTranspose3d: { draw: convTranspose(3), count: 20, isUnsteady: 'halves' },
  maxPool3d: { draw: pool3d('maxPool3d', true), count: 24 },
  avgPool3d: { draw: pool3d('avgPool3d', false), count: 24 },
  adaptiveAvgPool3d: { draw: adaptive('adaptiveAvgPool3d'), count: 14 },
  adaptiveMaxPool3d: { draw: adaptive('adaptiveMaxPool3d'), count: 14 },
  maxPool1dWithIndices: { draw: withIndices1d, count: 10 },
  maxPool3dWithIndices: { draw: pool3d('maxPool3dWithIndices', true), count: 14 },
  maxUnpool1d: { draw: unpool(1), count: 10 },
  maxUnpool3d: { draw: unpool(3), count: 10 },
  lpPool3d: { draw: lpPool3d, count: 10, isUnsteady: true },
  featureAlphaDropout: { draw: dropping('featureAlphaDropout', [2, 3, 4]) },
  'nn.ConvTranspose3d': { draw: convTransposeLayer(3), count: 5, isUnsteady: 'halves' },
  'nn.MaxPool3d': stateless('MaxPool3d', (d) => [[2, { stride: d.draws.int(1, 2) }], volume(d, 2, 3, 2, 3)]),
  'nn.AvgPool3d': stateless('AvgPool3d', (d) => [[[1, 2, 2], { stride: 1 }], volume(d, 2, 3, 2, 3)]),
  'nn.AdaptiveAvgPool3d': stateless('AdaptiveAvgPool3d', (d) => [
    [[d.draws.int(1, 3), null, 2]],
    volume(d, 2, 3, 1, 3),
  ]),
  'nn.AdaptiveMaxPool3d': stateless('AdaptiveMaxPool3d', (d) => [[d.draws.int(1, 3)], volume(d, 2, 3, 1, 3)]),
  'nn.LPPool3d': stateless('LPPool3d', (d) => [[1, d.draws.int(1, 2), { stride: 1 }], volume(d, 2, 3, 2, 3)]),
  'nn.MaxUnpool1d': { draw: unpoolLayer(1), count: 2 },
  'nn.MaxUnpool3d': { draw: unpoolLayer(3), count: 2 },
  'nn.FeatureAlphaDropout': stateless('FeatureAlphaDropout', (d) => [[0.3], volume(d, 2, 1)], false),
};
