// Cases of functions that make tensors, initialise them, promote dtypes or draw random numbers. Random numbers are
// compared only by dtype and shape, except for draws whose result is certain.
import type { Arg } from '../../case.ts';
import { allTypes, type Draft, floats, nothing } from '../../draft.ts';
import type { Makers } from '../index.ts';

const typed = (d: Draft): Arg => (d.draws.chance(0.4) ? nothing : { dtype: d.anyType() });

function shapeOf(d: Draft): number[] {
  const shape = d.shape();
  return d.draws.chance(0.06) ? [...shape, -1] : shape;
}

const nested = (d: Draft, shape: readonly number[], make: () => Arg): Arg =>
  shape.length === 0 ? make() : Array.from({ length: shape[0]! }, () => nested(d, shape.slice(1), make));

function tensor(d: Draft): void {
  const { draws } = d;
  const isBool = draws.chance(0.2);
  const shape = d.shape(0, 3);
  const isRagged = draws.chance(0.06);
  const data = nested(d, shape, () => (isBool ? draws.chance(0.5) : draws.pick([0, 1, 2, 3, 5])));
  d.call('tensor', isRagged ? [[1, 2], [3]] : data, typed(d));
}

function resultType(d: Draft): void {
  const { draws } = d;
  const one = (): Arg => d.tensor(draws.pick([[], [2]]), { dtype: draws.pick(allTypes) });
  const number = draws.pick<Arg>([1, 0.5, -2]);
  d.call(
    'resultType',
    ...(draws.chance(0.5) ? [one(), one()] : draws.chance(0.5) ? [one(), number] : [number, one()]),
  );
}

function random(op: string, args: (d: Draft) => readonly Arg[]) {
  return {
    draw: (d: Draft): void => {
      d.compares = 'kind';
      d.call(op, ...args(d));
    },
    count: 5,
  };
}

function bernoulli(d: Draft): void {
  const isSure = d.draws.chance(0.7);
  const dtype = d.floatType();
  const spec = { dtype, domain: isSure ? ([0, 1] as const) : ('share' as const), grad: false };
  if (!isSure) d.compares = 'kind';
  d.call('bernoulli', d.tensor(d.shape(), spec));
}

/** Draws from weights of which only one is above 0, so that the result is certain. */
function multinomial(d: Draft): void {
  const { draws } = d;
  const rows = draws.pick([[], [2]]);
  const cols = draws.int(1, 4);
  const weights = Array.from({ length: (rows[0] ?? 1) * cols }, (_, i) => Number(i % cols === cols - 1) * 2);
  const replacement = draws.chance(0.5);
  const count = replacement ? draws.int(1, 3) : draws.chance(0.8) ? 1 : draws.pick([0, cols + 1]);
  const w = d.given(
    draws.chance(0.1) ? weights.map(() => 0) : draws.chance(0.05) ? weights.map(() => -1) : weights,
    [...rows, cols],
    d.floatType(),
    false,
  );
  d.call('multinomial', w, count, replacement ? { replacement } : nothing);
}

const initial = (name: string, ...args: readonly Arg[]) => ({
  draw: (d: Draft): void => {
    const shape = name === 'eye_' ? d.shape(d.draws.chance(0.15) ? 1 : 2, 2) : d.shape(1, 3);
    const x = d.tensor(shape, { grad: false, views: false });
    d.steps.push({ op: `nn.init.${name}`, via: 'function', args: [x, ...args], inPlace: true });
  },
  count: 4,
});

function calculateGain(d: Draft): void {
  const name = d.draws.pick(['linear', 'sigmoid', 'tanh', 'relu', 'leakyRelu', 'selu', 'cube']);
  const args = name === 'leakyRelu' && d.draws.chance(0.5) ? [name, 0.3] : [name];
  d.steps.push({ op: 'nn.init.calculateGain', via: 'function', args });
}

export const creation: Makers = {
  zeros: { draw: (d) => d.call('zeros', shapeOf(d), typed(d)) },
  ones: { draw: (d) => d.call('ones', shapeOf(d), typed(d)) },
  full: {
    draw: (d) =>
      d.call(
        'full',
        shapeOf(d),
        d.draws.pick<Arg>([0, 1, 7, { $: 'nan' }, 3.5]),
        d.draws.chance(0.3) ? nothing : { dtype: d.draws.pick(floats) },
      ),
  },
  zerosLike: {
    draw: (d) => d.call('zerosLike', d.tensor(d.shape(), { dtype: d.anyType(), grad: false }), typed(d)),
  },
  onesLike: {
    draw: (d) => d.call('onesLike', d.tensor(d.shape(), { dtype: d.anyType(), grad: false }), typed(d)),
  },
  eye: {
    draw: (d) =>
      d.call(
        'eye',
        d.draws.int(d.draws.chance(0.1) ? -1 : 0, 4),
        d.draws.chance(0.4) ? nothing : d.draws.int(0, 4),
        typed(d),
      ),
  },
  arange: {
    draw: (d) => {
      const step = d.draws.pick([1, 2, 0.5, -1, -0.25, 0]);
      if (!Number.isInteger(step)) d.tags.add('fraction as step');
      const [start, end] = [d.draws.int(-3, 3), d.draws.int(-3, 6)];
      if (d.draws.chance(0.3)) d.call('arange', Math.abs(end));
      else d.call('arange', start, end, step, typed(d));
    },
    count: 14,
  },
  linspace: {
    draw: (d) =>
      d.call(
        'linspace',
        d.draws.int(-3, 3),
        d.draws.pick([-2, 0, 1.5, 4]),
        d.draws.int(d.draws.chance(0.1) ? -1 : 0, 6),
        d.draws.pick<Arg>([nothing, { dtype: 'float64' }]),
      ),
  },
  tensor: { draw: tensor },
  promoteTypes: {
    draw: (d) => d.call('promoteTypes', d.draws.pick(allTypes), d.draws.pick(allTypes)),
    count: 18,
  },
  resultType: { draw: resultType, count: 24 },
  item: {
    draw: (d) =>
      d.call(
        'item',
        d.tensor(d.draws.pick([[], [1], [1, 1], [2], [0]]), { dtype: d.anyType(), domain: 'special' }),
      ),
  },
  rand: random('rand', (d) => [shapeOf(d)]),
  randn: random('randn', (d) => [shapeOf(d)]),
  randint: random('randint', (d) => [0, d.draws.pick([3, 1, 0]), shapeOf(d)]),
  randperm: random('randperm', (d) => [d.draws.int(d.draws.chance(0.1) ? -1 : 0, 5)]),
  bernoulli: { draw: bernoulli },
  multinomial: { draw: multinomial },
  'nn.init.constant_': initial('constant_', 2.5),
  'nn.init.zeros_': initial('zeros_'),
  'nn.init.ones_': initial('ones_'),
  'nn.init.eye_': initial('eye_'),
  'nn.init.calculateGain': { draw: calculateGain, count: 7 },
};
