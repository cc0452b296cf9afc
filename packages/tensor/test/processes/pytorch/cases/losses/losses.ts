// Cases of losses and of cosine similarity, as functions and as modules of nn. A few draw invalid arguments, for which
// both libraries must throw.
import type { Arg, Ref } from '../../case.ts';
import { allTypes, type Draft, floats, nothing, type TensorSpec } from '../../draft.ts';
import type { Domain } from '../../values.ts';
import type { Makers } from '../index.ts';

type Options = Record<string, Arg>;

/** The arguments of a loss: two tensors or three, then options. */
type DrawnArguments = readonly [args: readonly Ref[], options: Options];

const optionsOrNothing = (options: Options): Arg => (Object.keys(options).length > 0 ? options : nothing);

function reduction(d: Draft, others: readonly string[] = []): Options {
  const way = d.draws.pick(['', 'mean', 'sum', 'none', ...others]);
  return way === '' ? {} : { reduction: d.draws.chance(0.02) ? 'max' : way };
}

/** Draws two shapes: in most cases equal, else the second broadcasts to the first. */
function shapes(d: Draft, least = 0): [number[], number[]] {
  const shape = d.shape(least, 3);
  return [shape, d.draws.chance(0.85) ? shape : d.narrower(shape)];
}

/** Draws two tensors, in most cases of one dtype and shape. Also returns the shape of the first. */
function pairOf(d: Draft, first: Domain, second: Domain, least = 0): [Ref, Ref, number[]] {
  const dtype = d.floatType();
  const other = d.beside(dtype, allTypes);
  const [a, b] = shapes(d, least);
  return [d.tensor(a, { dtype, domain: first }), d.tensor(b, { dtype: other, domain: second }), a];
}

const distance =
  (option: string) =>
  (d: Draft): DrawnArguments => {
    const [a, b] = pairOf(d, 'any', d.draws.pick(['coarse', 'any'] as const));
    const own = option !== '' && d.draws.chance(0.6) ? { [option]: d.draws.pick([0.5, 1, 2, 0, -1]) } : {};
    return [[a, b], { ...reduction(d), ...own }];
  };

function weightFor(d: Draft, shape: readonly number[], spec: TensorSpec = {}): Ref {
  const weight = d.tensor(shape, { domain: 'positive', grad: d.draws.chance(0.15), ...spec });
  // The last input is the weight.
  if (d.inputs.at(-1)!.grad) d.tags.add('gradient of a weight');
  return weight;
}

function bce(d: Draft): DrawnArguments {
  // bce() refuses values outside 0 … 1.
  const isInRange = d.draws.chance(0.9);
  const [p, y, shape] = pairOf(d, isInRange ? 'share' : 'coarse', 'share');
  return [
    [p, y],
    { ...reduction(d), ...(d.draws.chance(0.3) ? { weight: weightFor(d, d.narrower(shape)) } : {}) },
  ];
}

function bceWithLogits(d: Draft): DrawnArguments {
  const [x, y, shape] = pairOf(d, 'any', 'share');
  const weight = d.draws.chance(0.3) ? { weight: weightFor(d, d.narrower(shape)) } : {};
  return [
    [x, y],
    {
      ...reduction(d),
      ...weight,
      ...(d.draws.chance(0.3) ? { posWeight: weightFor(d, d.narrower(shape)) } : {}),
    },
  ];
}

function klDiv(d: Draft): DrawnArguments {
  const isLogTarget = d.draws.chance(0.4);
  const [p, y] = pairOf(d, 'finite', isLogTarget ? 'finite' : 'share');
  return [[p, y], { ...reduction(d, ['batchmean']), ...(isLogTarget ? { logTarget: true } : {}) }];
}

/**
 * Returns a function that draws the arguments of `op`: scores [batch, classes, …] or [classes], with labels or, for
 * crossEntropy, class probabilities.
 */
function classes(op: 'nllLoss' | 'crossEntropy') {
  return (d: Draft): DrawnArguments => {
    const { draws } = d;
    const dtype = d.floatType();
    const labelType = d.beside('int64', ['int32', 'uint8', 'float32']);
    const classCount = draws.int(1, 4);
    const isUnbatched = draws.chance(0.1);
    const rest = draws.chance(0.3) ? [d.size()] : [];
    const batch = isUnbatched ? [] : [d.size()];
    const shape = isUnbatched ? [classCount] : [...batch, classCount, ...rest];
    const scores = d.tensor(shape, { dtype });
    const own: Options = reduction(d);
    if (draws.chance(0.3))
      own.weight = weightFor(d, [classCount + Number(draws.chance(0.04))], {
        dtype: draws.chance(0.85) ? dtype : 'float32',
      });
    if (op === 'crossEntropy' && draws.chance(0.35)) own.labelSmoothing = draws.pick([0, 0.1, 0.5, 1, 1.5]);
    if (draws.chance(0.25)) own.ignoreIndex = draws.pick([0, -1, 1]);
    if (op === 'crossEntropy' && draws.chance(0.25)) {
      const target = draws.chance(0.9) ? dtype : draws.pick(floats);
      return [[scores, d.tensor(shape, { dtype: target, domain: 'share' })], own];
    }
    const hasExtraDim = draws.chance(0.04);
    if (isUnbatched && rest[0] === 1 && !hasExtraDim) d.tags.add('label of shape [1]');
    const labels = d.tensor([...batch, ...rest, ...(hasExtraDim ? [2] : [])], {
      dtype: labelType,
      domain: draws.chance(0.05) ? [-1, classCount] : [0, classCount - 1],
    });
    return [[scores, labels], own];
  };
}

function cosineSimilarity(d: Draft): void {
  const [a, b, shape] = pairOf(
    d,
    d.draws.pick(['finite', 'coarse', 'any'] as const),
    'finite',
    d.draws.chance(0.1) ? 0 : 1,
  );
  d.call(
    'cosineSimilarity',
    a,
    b,
    d.draws.chance(0.2) ? nothing : d.dim(shape.length),
    d.draws.pick([nothing, 1e-8, 0.5]),
  );
}

function cosineEmbedding(d: Draft): DrawnArguments {
  const { draws } = d;
  const dtype = d.floatType();
  const [rows, width] = [d.size(), d.size()];
  const shape = draws.chance(0.15) ? [width] : [rows, width];
  const [a, b] = [d.tensor(shape, { dtype, domain: 'finite' }), d.tensor(shape, { dtype, domain: 'finite' })];
  const labels = d.given(
    Array.from({ length: shape.length === 1 ? 1 : rows }, () => draws.pick([1, -1])),
    shape.slice(0, -1),
    draws.pick(['float32', 'int64'] as const),
    false,
  );
  return [
    [a, b, labels],
    { ...reduction(d), ...(draws.chance(0.4) ? { margin: draws.pick([0.1, 0.5, -0.2]) } : {}) },
  ];
}

/**
 * For each loss: its module, the function that draws its arguments, the number of cases, and whether rounding is
 * amplified.
 */
const lossTable: Readonly<
  Record<
    string,
    readonly [module: string, draw: (d: Draft) => DrawnArguments, count?: number, isUnsteady?: boolean]
  >
> = {
  mseLoss: ['MSELoss', distance('')],
  l1Loss: ['L1Loss', distance('')],
  huberLoss: ['HuberLoss', distance('delta'), 14],
  smoothL1Loss: ['SmoothL1Loss', distance('beta'), 14],
  bce: ['BCELoss', bce, 14],
  bceWithLogits: ['BCEWithLogitsLoss', bceWithLogits, 14],
  klDiv: ['KLDivLoss', klDiv, 14],
  nllLoss: ['NLLLoss', classes('nllLoss'), 24],
  crossEntropy: ['CrossEntropyLoss', classes('crossEntropy'), 40],
  cosineEmbeddingLoss: ['CosineEmbeddingLoss', cosineEmbedding, 12, true],
};

const functions: Makers = Object.fromEntries(
  Object.entries(lossTable).map(([op, [, draw, count = 10, isUnsteady = false]]) => [
    op,
    {
      draw: (d: Draft) => {
        const [args, options] = draw(d);
        d.call(op, ...args, optionsOrNothing(options));
      },
      count,
      isUnsteady,
    },
  ]),
);

const asModules: Makers = Object.fromEntries(
  Object.values(lossTable).map(([name, draw, , isUnsteady = false]) => [
    `nn.${name}`,
    {
      draw: (d: Draft) => {
        const [args, options] = draw(d);
        d.callModule(name, [optionsOrNothing(options)], {}, args);
      },
      count: 5,
      isUnsteady,
    },
  ]),
);

export const losses: Makers = {
  ...functions,
  ...asModules,
  cosineSimilarity: { draw: cosineSimilarity, count: 14, isUnsteady: true },
  'nn.CosineSimilarity': {
    draw: (d) => {
      const [a, b] = pairOf(d, 'finite', 'finite', 2);
      d.callModule(
        'CosineSimilarity',
        [d.draws.pick<Arg>([nothing, { dim: 0 }, { dim: -1, eps: 0.1 }])],
        {},
        [a, b],
      );
    },
    count: 5,
    isUnsteady: true,
  },
};
