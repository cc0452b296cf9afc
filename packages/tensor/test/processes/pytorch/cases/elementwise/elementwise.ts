// Cases of functions of one element, of two broadcast elements, and of choices such as where.
import type { Arg, Ref } from '../../case.ts';
import { allTypes, type Draft, floats, nothing } from '../../draft.ts';
import type { Makers } from '../index.ts';

const unary =
  (op: string) =>
  (d: Draft): void =>
    d.call(op, d.tensor(d.shape(), { dtype: d.anyType() }));

const anyNumber = (d: Draft): Arg =>
  d.draws.pick<Arg>([0, 1, 2, -1, 3, 0.5, -1.5, 2.25, { $: 'nan' }, { $: 'inf' }, { $: '-inf' }]);

/** Draws two operands: tensors to be broadcast, often of two dtypes; a tensor and a number; or one tensor twice. */
function operands(d: Draft): [Arg, Arg] {
  const { draws } = d;
  const dtype = d.anyType();
  const shape = d.shape();
  const way = d.index < allTypes.length ? 0 : draws.uniform();
  if (way > 0.93) {
    const x = d.tensor(shape, { dtype });
    return [x, x];
  }
  if (way > 0.7) {
    const x = d.tensor(shape, { dtype });
    const [isSecond, number] = [draws.chance(0.6), anyNumber(d)];
    if (typeof number === 'number' && number < 0 && dtype === 'uint8') d.tags.add('number below 0');
    return isSecond ? [x, number] : [number, x];
  }
  const other = draws.chance(0.55) ? dtype : draws.pick(allTypes);
  return [d.tensor(d.narrower(shape), { dtype }), d.tensor(d.narrower(shape), { dtype: other })];
}

const binary =
  (op: string) =>
  (d: Draft): void =>
    d.call(op, ...operands(d));

function pow(d: Draft): void {
  if (d.draws.chance(0.5)) {
    d.call('pow', ...operands(d));
    return;
  }
  const shape = d.shape();
  const [dtype, other] = [d.draws.pick(floats), d.draws.pick(['float32', 'int32'] as const)];
  const base = d.tensor(shape, { dtype, domain: d.draws.pick(['positive', 'coarse'] as const) });
  const power = d.draws.pick<() => Arg>([
    () => d.draws.pick([0, 1, 2, 3, 0.5, -1, -0.5]),
    () => d.tensor(d.narrower(shape), { dtype: other, domain: 'coarse' }),
  ]);
  d.call('pow', base, power());
}

const mask = (d: Draft, shape: readonly number[]): Ref =>
  d.tensor(shape, { dtype: d.draws.chance(0.96) ? 'bool' : d.draws.pick(['uint8', 'float32'] as const) });

function where(d: Draft): void {
  const shape = d.shape();
  const [a, b] = d.draws.chance(0.6)
    ? [
        d.tensor(d.narrower(shape), { dtype: d.anyType() }),
        d.tensor(d.narrower(shape), { dtype: d.anyType() }),
      ]
    : operands(d);
  d.call('where', mask(d, d.narrower(shape)), a, b);
}

function maskedFill(d: Draft): void {
  const shape = d.shape();
  const x = d.tensor(d.narrower(shape), { dtype: d.anyType() });
  const [own, value] = [mask(d, d.narrower(shape)), anyNumber(d)];
  if (typeof value === 'number' && value < 0 && d.inputs[0]!.dtype === 'uint8') d.tags.add('number below 0');
  d.call('maskedFill', x, own, value);
}

function clamp(d: Draft): void {
  const { draws } = d;
  const shape = d.shape();
  const dtype = d.anyType();
  const x = d.tensor(shape, { dtype });
  const isTensor = draws.chance(0.3);
  const bound = (): Arg => {
    if (draws.chance(0.25)) return draws.pick([null, nothing]);
    if (!isTensor) {
      const number = draws.pick<Arg>([-1, 0, 1, 0.5, -1.5, 2, { $: 'nan' }, { $: 'inf' }]);
      if (typeof number === 'number' && number < 0 && dtype === 'uint8') d.tags.add('number below 0');
      return number;
    }
    const own = d.narrower(shape);
    // narrower() may widen a size of 1 to 5, which shape() never draws: then the bound is larger than x.
    if (own.includes(5)) d.tags.add('larger bound');
    return d.tensor(own, { dtype: draws.chance(0.8) ? dtype : draws.pick(allTypes) });
  };
  d.call('clamp', x, bound(), bound());
}

const names = (list: string): string[] => list.split(' ');
const all = (list: string, make: (op: string) => (d: Draft) => void): Makers =>
  Object.fromEntries(names(list).map((op) => [op, { draw: make(op) }]));

export const elementwise: Makers = {
  ...all('neg abs sign exp log sqrt rsqrt square sin cos tanh sigmoid relu erf silu', unary),
  ...all('floor ceil round trunc logicalNot', unary),
  gelu: {
    draw: (d) => {
      const x = d.tensor(d.shape(), { dtype: d.anyType() });
      d.call('gelu', x, d.draws.pick<Arg>([nothing, { approximate: 'tanh' }, { approximate: 'none' }]));
    },
  },
  softplus: {
    draw: (d) => {
      const x = d.tensor(d.shape(), { dtype: d.anyType() });
      d.call('softplus', x, ...d.draws.pick<readonly Arg[]>([[], [], [2], [-0.5], [0.5, 1], [1, -1]]));
    },
  },
  leakyRelu: {
    draw: (d) =>
      d.call(
        'leakyRelu',
        d.tensor(d.shape(), { dtype: d.anyType() }),
        d.draws.pick([nothing, 0.2, 0, -0.5, 2]),
      ),
  },
  elu: {
    draw: (d) =>
      d.call('elu', d.tensor(d.shape(), { dtype: d.anyType() }), d.draws.pick([nothing, 0.7, 2, 0, -1])),
  },
  ...all('add sub mul div maximum minimum eq ne lt le gt ge logicalAnd logicalOr logicalXor', binary),
  pow: { draw: pow, count: 18 },
  where: { draw: where, count: 12 },
  maskedFill: { draw: maskedFill, count: 12 },
  clamp: { draw: clamp, count: 18 },
};
