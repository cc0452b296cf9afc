// Cases of elementwise functions beyond arithmetic, and of their forms that write in place.
import type { Arg } from '../../case.ts';
import { allTypes, type Draft, floats, nothing, type TensorSpec } from '../../draft.ts';
import type { Maker, Makers } from '../index.ts';

const all = (list: string, make: (op: string) => Maker): Makers =>
  Object.fromEntries(list.split(' ').map((op) => [op, make(op)]));

/** Draws a call of a function of one tensor, and of other arguments if `rest` draws them. */
const ofOne =
  (op: string, spec: TensorSpec = {}, rest: (d: Draft) => readonly Arg[] = () => []): Maker['draw'] =>
  (d) =>
    d.call(op, d.tensor(d.shape(), { dtype: d.anyType(), ...spec }), ...rest(d));

/** Draws the limits of an activation. */
const limits =
  (...choices: readonly (readonly Arg[])[]) =>
  (d: Draft): readonly Arg[] =>
    d.draws.pick(choices);

function prelu(d: Draft): void {
  const dtype = d.draws.pick(floats);
  const shape = d.shape();
  const channels = d.draws.chance(0.6) ? (shape[1] ?? 1) : d.draws.pick([1, 3]);
  const own = d.draws.chance(0.15) ? [] : [channels];
  d.call(
    'prelu',
    d.tensor(shape, { dtype }),
    d.tensor(own, { dtype: d.draws.chance(0.9) ? dtype : 'float64' }),
  );
}

function threshold(d: Draft): void {
  const dtype = d.anyType();
  const [limit, value] = d.draws.pick([
    [0, 1],
    [0.5, -2],
    [1, 20],
    [-1, 0],
  ] as const);
  if (dtype === 'uint8' && Math.min(limit, value) < 0) d.tags.add('number below 0');
  d.call('threshold', d.tensor(d.shape(), { dtype }), limit, value);
}

/** Draws two operands: tensors to be broadcast, often of two dtypes, or a tensor and a number. */
function operands(d: Draft, spec: TensorSpec = {}): [Arg, Arg] {
  const { draws } = d;
  const dtype = d.anyType();
  const shape = d.shape();
  if (d.index >= allTypes.length && draws.chance(0.25)) {
    const x = d.tensor(shape, { dtype, ...spec });
    const number = draws.pick([2, 1, 3, -2, 0.5]);
    if (number < 0 && dtype === 'uint8') d.tags.add('number below 0');
    return draws.chance(0.7) ? [x, number] : [number, x];
  }
  const other = draws.chance(0.7) ? dtype : draws.pick(allTypes);
  return [
    d.tensor(d.narrower(shape), { dtype, ...spec }),
    d.tensor(d.narrower(shape), { dtype: other, ...spec }),
  ];
}

const ofTwo =
  (op: string, spec: TensorSpec = {}): Maker['draw'] =>
  (d) =>
    d.call(op, ...operands(d, spec));

/** Draws a dividend and a divisor. Most divisors of integers are not 0, which throws. */
const ofQuotient =
  (op: string): Maker['draw'] =>
  (d) => {
    const { draws } = d;
    const dtype = d.anyType();
    const shape = d.shape();
    const x = d.tensor(d.narrower(shape), { dtype });
    if (d.index >= allTypes.length && draws.chance(0.3)) {
      const number = draws.pick([2, 3, -2, 0.5, -1.5, 0, 1]);
      if (number < 0 && dtype === 'uint8') d.tags.add('number below 0');
      d.call(op, x, number);
      return;
    }
    const other = draws.chance(0.7) ? dtype : draws.pick(allTypes);
    const isSafe = !(floats as readonly string[]).includes(other) && draws.chance(0.85);
    const domain = isSafe ? draws.pick(['positive', [-7, -1]] as const) : 'any';
    const isUnsigned = other === 'uint8' || other === 'bool';
    d.call(
      op,
      x,
      d.tensor(d.narrower(shape), { dtype: other, domain: isUnsigned && isSafe ? [1, 1] : domain }),
    );
  };

const integerTypes = ['int64', 'int32', 'uint8', 'bool'] as const;

/** Draws two operands of integers, sometimes of floats, which are refused. */
const ofIntegers =
  (op: string, second?: TensorSpec['domain']): Maker['draw'] =>
  (d) => {
    const { draws } = d;
    const dtype = integerTypes[d.index] ?? (draws.chance(0.9) ? draws.pick(integerTypes) : 'float32');
    const shape = d.shape();
    const x = d.tensor(d.narrower(shape), { dtype, grad: false });
    if (d.index >= 4 && draws.chance(0.25)) {
      const number = draws.pick([3, 1, 5, -6, 12]);
      if (number < 0 && dtype === 'uint8') d.tags.add('number below 0');
      if (d.index % 2 === 0) d.call(op, x, number);
      else d.call(op, number, x);
      return;
    }
    const other = draws.chance(0.6) ? dtype : draws.pick(integerTypes);
    const isSigned = other === 'int64' || other === 'int32';
    const domain = second !== undefined && isSigned ? second : 'any';
    d.call(op, x, d.tensor(d.narrower(shape), { dtype: other, domain, grad: false }));
  };

function blend(op: string): Maker['draw'] {
  return (d) => {
    const { draws } = d;
    const dtype = d.anyType();
    const shape = d.shape();
    const other = () => (draws.chance(0.75) ? dtype : draws.pick(allTypes));
    const [a, b, c] = [dtype, other(), other()].map((own) => d.tensor(d.narrower(shape), { dtype: own }));
    const value = draws.pick([null, 2, -1, 0.5]);
    const isOfFloats = d.inputs.some((input) => (floats as readonly string[]).includes(input.dtype));
    if (value === 0.5 && !isOfFloats) d.tags.add('fraction of integers');
    d.call(op, a!, b!, c!, value === null ? nothing : { value });
  };
}

function lerp(d: Draft): void {
  const { draws } = d;
  const dtype = d.anyType();
  const shape = d.shape();
  const tensor = (): Arg =>
    d.tensor(d.narrower(shape), { dtype: draws.chance(0.95) ? dtype : draws.pick(allTypes) });
  const [a, end] = [tensor(), tensor()];
  d.call('lerp', a, end, draws.chance(0.5) ? tensor() : draws.pick([0.25, 0.5, 1, 0, -2, 0.75, 3]));
}

function ldexp(d: Draft): void {
  const dtype = d.anyType();
  const shape = d.shape();
  const exponents = d.draws.pick(['int32', 'int64', 'float32', 'float64', dtype] as const);
  d.call(
    'ldexp',
    d.tensor(d.narrower(shape), { dtype }),
    d.tensor(d.narrower(shape), { dtype: exponents, domain: 'finite' }),
  );
}

function heaviside(d: Draft): void {
  const dtype = d.anyType();
  const shape = d.shape();
  const other = d.draws.chance(0.9) ? dtype : d.draws.pick(allTypes);
  const spec: TensorSpec = { domain: 'coarse', grad: d.draws.chance(0.2) };
  d.call(
    'heaviside',
    d.tensor(d.narrower(shape), { dtype, ...spec }),
    d.tensor(d.narrower(shape), { dtype: other, ...spec }),
  );
}

function close(d: Draft): void {
  const { draws } = d;
  const dtype = d.anyType();
  const shape = d.shape();
  const domain = draws.pick(['coarse', 'special'] as const);
  const [a, b] = [
    d.tensor(d.narrower(shape), { dtype, domain }),
    d.tensor(d.narrower(shape), { dtype: draws.chance(0.92) ? dtype : draws.pick(allTypes), domain }),
  ];
  d.call(
    'isclose',
    a,
    b,
    draws.pick<Arg>([nothing, { equalNan: true }, { atol: 0.75 }, { rtol: 0.6, atol: 0.1 }]),
  );
}

function nanToNum(d: Draft): void {
  const dtype = d.anyType();
  // Answers are stored with fewer digits, with which the largest number of other floats would be infinite.
  const isNamed = dtype !== 'float16';
  const numbers = d.draws.pick<readonly Arg[]>(
    isNamed
      ? [
          [2, 3, -4],
          [{ $: 'nan' }, 0, -1],
        ]
      : [[], [1], [0.5, 2], [2, 3, -4], [0, null, -1]],
  );
  d.call('nanToNum', d.tensor(d.shape(), { dtype, domain: 'special' }), ...numbers);
}

export const functions: Makers = {
  ...all('log1p expm1 log2 log10 exp2 reciprocal tan atan sinh cosh asinh erfc', (op) => ({
    draw: ofOne(op),
  })),
  ...all('frac sgn sinc deg2rad rad2deg isnan isfinite isinf isposinf isneginf signbit', (op) => ({
    draw: ofOne(op),
  })),
  // Half of the cases are within the range where these are numbers.
  ...all('asin acos atanh acosh erfinv', (op) => ({
    draw: (d) => ofOne(op, d.index % 2 === 0 ? { domain: op === 'acosh' ? [1, 5] : 'share' } : {})(d),
    count: 14,
  })),
  logit: {
    draw: (d) =>
      ofOne('logit', d.index % 2 === 0 ? { domain: 'share' } : {}, limits([], [0.1], [0.25], [0.4]))(d),
    count: 16,
  },
  nanToNum: { draw: nanToNum, count: 14 },
  ...all('atan2 hypot copysign logaddexp logaddexp2 xlogy fmax fmin', (op) => ({
    draw: ofTwo(op),
    count: 16,
  })),
  ...all('remainder fmod floorDivide', (op) => ({ draw: ofQuotient(op), count: 20 })),
  ...all('bitwiseAnd bitwiseOr bitwiseXor gcd lcm', (op) => ({ draw: ofIntegers(op), count: 12 })),
  ...all('bitwiseLeftShift bitwiseRightShift', (op) => ({ draw: ofIntegers(op, [-2, 66]), count: 14 })),
  bitwiseNot: { draw: ofOne('bitwiseNot', { grad: false }) },
  ...all('addcmul addcdiv', (op) => ({ draw: blend(op), count: 20 })),
  lerp: { draw: lerp, count: 20 },
  heaviside: { draw: heaviside, count: 14 },
  // Second gradients differ where those of pow do.
  floatPower: { draw: ofTwo('floatPower'), count: 16, isUnsteady: true },
  ldexp: { draw: ldexp, count: 16 },
  positive: { draw: ofOne('positive') },
  isFloatingPoint: { draw: ofOne('isFloatingPoint', { grad: false }) },
  isclose: { draw: close, count: 14 },
  ...all('softsign tanhshrink relu6 hardsigmoid hardswish selu mish logSigmoid', (op) => ({
    draw: ofOne(op),
  })),
  hardtanh: { draw: ofOne('hardtanh', {}, limits([], [], [-2, 0.5], [0, 1], [1, -1], [0, 2])), count: 14 },
  threshold: { draw: threshold, count: 14 },
  hardshrink: { draw: ofOne('hardshrink', {}, limits([], [1], [0], [0.75], [-1])), count: 14 },
  softshrink: { draw: ofOne('softshrink', {}, limits([], [1], [0], [0.75], [-1])), count: 14 },
  celu: { draw: ofOne('celu', {}, limits([], [0.5], [2], [-1], [0])), count: 14 },
  prelu: { draw: prelu, count: 16 },
  glu: {
    draw: (d) => {
      const dtype = d.anyType();
      const shape = d.shape();
      const dim = d.draws.pick([nothing, 0, 1, -1, -2]);
      d.call('glu', d.tensor(d.draws.chance(0.5) ? shape.map((size) => 2 * size) : shape, { dtype }), dim);
    },
    count: 16,
  },
};
