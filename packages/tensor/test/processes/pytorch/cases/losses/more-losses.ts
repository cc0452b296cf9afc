// Cases of losses with margins and of likelihoods, as functions and as modules of nn, and of layers of activations.
import type { Arg, Ref } from '../../case.ts';
import { type Draft, nothing } from '../../draft.ts';
import type { Domain } from '../../values.ts';
import type { Makers } from '../index.ts';

type Options = Record<string, Arg>;
type Drawn = readonly [args: readonly Ref[], options: Options];

const typeOf = (d: Draft) => d.draws.pick(['float32', 'float32', 'float64'] as const);

function reduction(d: Draft): Options {
  const way = d.draws.pick(['', 'mean', 'sum', 'none']);
  return way === '' ? {} : { reduction: way };
}

const some = (d: Draft, name: string, values: readonly (number | boolean)[]): Options =>
  d.draws.chance(0.4) ? { [name]: d.draws.pick(values) } : {};

/** Draws labels of 1 and −1. */
function signs(d: Draft, shape: readonly number[]): Ref {
  const count = shape.reduce((a, b) => a * b, 1);
  return d.given(
    Array.from({ length: count }, () => d.draws.pick([1, -1])),
    shape,
    d.draws.pick(['float32', 'int64'] as const),
    false,
  );
}

function ranking(d: Draft): Drawn {
  const dtype = typeOf(d);
  const shape = d.shape(0, 3);
  const [a, b] = [d.tensor(shape, { dtype, domain: 'finite' }), d.tensor(shape, { dtype, domain: 'finite' })];
  const own = d.draws.chance(0.05) ? [...shape, 1] : shape;
  return [[a, b, signs(d, own)], { ...reduction(d), ...some(d, 'margin', [0.5, -0.5, 2]) }];
}

const signed =
  (option: string) =>
  (d: Draft): Drawn => {
    const shape = d.shape(0, 3);
    const x = d.tensor(shape, { dtype: typeOf(d), domain: 'coarse' });
    const own = option === '' ? {} : some(d, option, [0.5, 2]);
    return [[x, signs(d, shape)], { ...reduction(d), ...own }];
  };

/** Draws scores [batch, classes] or [classes]. */
function scores(d: Draft): { x: Ref; batch: number[]; classes: number; dtype: 'float32' | 'float64' } {
  const { draws } = d;
  const dtype = typeOf(d);
  const classes = draws.int(1, 4);
  const batch = draws.chance(0.2) ? [] : [draws.int(1, 3)];
  const x = d.tensor([...batch, classes], { dtype, domain: 'finite' });
  return { x, batch, classes, dtype };
}

function multiMargin(d: Draft): Drawn {
  const { x, batch, classes, dtype } = scores(d);
  const labels = d.tensor(batch, { dtype: 'int64', domain: [0, classes - 1] });
  const own = d.draws.chance(0.3)
    ? { weight: d.tensor([classes], { dtype, domain: 'positive', grad: false, views: false }) }
    : {};
  const options = { ...some(d, 'p', [1, 2]), ...some(d, 'margin', [0.5, 2]) };
  return [[x, labels], { ...reduction(d), ...options, ...own }];
}

function multilabelMargin(d: Draft): Drawn {
  const { x, batch, classes } = scores(d);
  return [[x, d.tensor([...batch, classes], { dtype: 'int64', domain: [-1, classes - 1] })], reduction(d)];
}

function multilabelSoftMargin(d: Draft): Drawn {
  const { x, batch, classes, dtype } = scores(d);
  const target = d.tensor([...batch, classes], { dtype, domain: [0, 1] });
  const weight = d.draws.chance(0.3)
    ? { weight: d.tensor([classes], { dtype, domain: 'positive', grad: false, views: false }) }
    : {};
  return [[x, target], { ...reduction(d), ...weight }];
}

const triplet =
  (hasNorm: boolean) =>
  (d: Draft): Drawn => {
    const dtype = typeOf(d);
    const shape = d.shape(1, 3).map((size) => Math.max(1, size));
    const one = (own = shape): Ref => d.tensor(own, { dtype, domain: 'real' });
    const options = { ...some(d, 'margin', [0.5, 3]), ...some(d, 'swap', [true]) };
    const norm = hasNorm ? { ...some(d, 'p', [1, 3]), ...some(d, 'eps', [1e-3]) } : {};
    const last = d.draws.chance(0.05) ? [2, ...shape] : shape;
    return [[one(), one(), one(last)], { ...reduction(d), ...options, ...norm }];
  };

function gaussian(d: Draft): Drawn {
  const dtype = typeOf(d);
  const shape = d.shape(1, 3).map((size) => Math.max(1, size));
  const last = d.draws.pick([[], [1], [shape.at(-1)!]]);
  const domain: Domain = d.draws.chance(0.9) ? 'positive' : 'coarse';
  const x = d.tensor(shape, { dtype, domain: 'finite' });
  const target = d.tensor(shape, { dtype, domain: 'finite' });
  const variance = d.tensor([...shape.slice(0, -1), ...last], { dtype, domain });
  return [[x, target, variance], { ...reduction(d), ...some(d, 'full', [true]), ...some(d, 'eps', [0.5]) }];
}

function poisson(d: Draft): Drawn {
  const dtype = typeOf(d);
  const shape = d.shape(0, 3);
  const logInput = d.draws.chance(0.5);
  const x = d.tensor(shape, { dtype, domain: logInput ? 'coarse' : 'positive' });
  const target = d.tensor(shape, { dtype, domain: [0, 5], grad: false });
  const options = { ...(logInput ? {} : { logInput }), ...some(d, 'full', [true]), ...some(d, 'eps', [0.1]) };
  return [[x, target], { ...reduction(d), ...options }];
}

function distance(d: Draft): Drawn {
  const dtype = typeOf(d);
  const shape = d.shape(1, 3).map((size) => Math.max(1, size));
  const [a, b] = [d.tensor(shape, { dtype, domain: 'real' }), d.tensor(shape, { dtype, domain: 'real' })];
  return [[a, b], { ...some(d, 'p', [1, 3]), ...some(d, 'eps', [1e-3]), ...some(d, 'keepDim', [true]) }];
}

const table: Readonly<Record<string, readonly [module: string, draw: (d: Draft) => Drawn]>> = {
  marginRankingLoss: ['MarginRankingLoss', ranking],
  hingeEmbeddingLoss: ['HingeEmbeddingLoss', signed('margin')],
  softMarginLoss: ['SoftMarginLoss', signed('')],
  multiMarginLoss: ['MultiMarginLoss', multiMargin],
  multilabelMarginLoss: ['MultiLabelMarginLoss', multilabelMargin],
  multilabelSoftMarginLoss: ['MultiLabelSoftMarginLoss', multilabelSoftMargin],
  tripletMarginLoss: ['TripletMarginLoss', triplet(true)],
  tripletMarginWithDistanceLoss: ['TripletMarginWithDistanceLoss', triplet(false)],
  gaussianNllLoss: ['GaussianNLLLoss', gaussian],
  poissonNllLoss: ['PoissonNLLLoss', poisson],
  pairwiseDistance: ['PairwiseDistance', distance],
};

const optionsOrNothing = (options: Options): Arg => (Object.keys(options).length > 0 ? options : nothing);

/** For each layer of an activation, lists of arguments of its constructor. */
const activations: Readonly<Record<string, readonly (readonly number[])[]>> = {
  ...Object.fromEntries(
    ['ReLU6', 'Hardsigmoid', 'Hardswish', 'Tanhshrink', 'Softsign', 'SELU', 'Mish', 'LogSigmoid'].map(
      (name) => [name, [[]]],
    ),
  ),
  ...{ Hardshrink: [[], [1]], Softshrink: [[], [1]], CELU: [[], [0.5]], Hardtanh: [[], [-0.5, 2]] },
  ...{ Threshold: [[0.5, -1]], Softmin: [[], [0]] },
};

const activation =
  (name: string) =>
  (d: Draft): void => {
    const x = d.tensor(d.shape(1), { dtype: typeOf(d), domain: 'finite' });
    d.callModule(name, d.draws.pick(activations[name]!), {}, [x]);
  };

function glu(d: Draft): void {
  d.callModule('GLU', d.draws.pick([[], [0]]), {}, [
    d.tensor([2, d.draws.int(1, 3), 4], { domain: 'finite' }),
  ]);
}

function prelu(d: Draft): void {
  const count = d.draws.pick([1, 3]);
  const weight = d.tensor([count], { domain: 'share', views: false });
  const x = d.tensor([d.draws.int(1, 2), 3, 2], { domain: 'finite' });
  d.callModule('PReLU', count === 1 ? [] : [count], { weight }, [x]);
}

function softmax2d(d: Draft): void {
  const shape = [2, 3, 2, 2].slice(d.draws.int(0, 2));
  d.callModule('Softmax2d', [], {}, [d.tensor(shape, { domain: 'finite' })]);
}

export const moreLosses: Makers = {
  ...Object.fromEntries(
    Object.keys(activations).map((name) => [`nn.${name}`, { draw: activation(name), count: 4 }]),
  ),
  'nn.GLU': { draw: glu, count: 4 },
  'nn.PReLU': { draw: prelu, count: 5 },
  'nn.Softmax2d': { draw: softmax2d, count: 4 },
  ...Object.fromEntries(
    Object.entries(table).map(([op, [, draw]]) => [
      op,
      {
        draw: (d: Draft) => {
          const [args, options] = draw(d);
          d.call(op, ...args, optionsOrNothing(options));
        },
        count: 12,
        isUnsteady: true,
      },
    ]),
  ),
  ...Object.fromEntries(
    Object.values(table).map(([name, draw]) => [
      `nn.${name}`,
      {
        draw: (d: Draft) => {
          const [args, options] = draw(d);
          d.callModule(name, [optionsOrNothing(options)], {}, args);
        },
        count: 4,
        isUnsteady: true,
      },
    ]),
  ),
};
