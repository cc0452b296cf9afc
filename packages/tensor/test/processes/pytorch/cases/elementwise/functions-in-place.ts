// Cases of the in-place forms of elementwise operations. The whole tensor that the written view is of is compared with
// PyTorch's, too.
import { inPlaceForms } from '../../../../../src/core/methods/in-place.ts';
import type { Arg } from '../../case.ts';
import { allTypes, type Draft, isFloat, type TensorSpec } from '../../draft.ts';
import type { Makers } from '../index.ts';

const integers = new Set(
  'gcd lcm bitwiseAnd bitwiseOr bitwiseXor bitwiseNot bitwiseLeftShift bitwiseRightShift'.split(' '),
);
const ofTwo = new Set(
  (
    'pow ldexp atan2 hypot copysign xlogy remainder fmod floorDivide gcd lcm eq ne lt le gt ge logicalAnd logicalOr ' +
    'logicalXor bitwiseAnd bitwiseOr bitwiseXor bitwiseLeftShift bitwiseRightShift'
  ).split(' '),
);

/** The forms of operations by index, whose cases are in arrays/writes.ts. */
const byIndex = new Set('scatter scatterAdd indexAdd indexCopy indexFill put maskedScatter'.split(' '));

/** Draws the other arguments of an operation on a tensor of this shape and dtype. */
function rest(d: Draft, name: string, shape: readonly number[], dtype: TensorSpec['dtype']): readonly Arg[] {
  const { draws } = d;
  const tensor = (spec: TensorSpec = {}): Arg =>
    d.tensor(d.narrower(shape), {
      dtype: draws.chance(0.75) ? dtype! : draws.pick(allTypes),
      grad: false,
      ...spec,
    });
  if (ofTwo.has(name)) {
    if (draws.chance(0.3)) return [draws.pick([2, 3, 1])];
    return [tensor({ domain: 'positive' })];
  }
  if (name === 'clamp') return draws.pick<readonly Arg[]>([[0, 1], [1], [null, 1], [tensor(), tensor()]]);
  if (name === 'maskedFill') return [d.tensor(d.narrower(shape), { dtype: 'bool' }), draws.pick([0, 1, 3])];
  if (name === 'lerp') return [tensor(), draws.pick([0.25, 0.75, 1])];
  if (name === 'heaviside') return [tensor()];
  if (name.startsWith('addc')) return [tensor(), tensor(), draws.pick<Arg>([{ value: 2 }, {}])];
  if (name === 'logit') return draws.pick([[], [0.25]]);
  return name === 'nanToNum' ? [1, 2, -2] : [];
}

export const functionsInPlace: Makers = Object.fromEntries(
  inPlaceForms
    .filter((name) => !byIndex.has(name))
    .map((name) => [
      `${name}_`,
      {
        count: 10,
        draw: (d: Draft): void => {
          const whole = ['int64', 'int32', 'uint8', 'bool'] as const;
          const dtype = integers.has(name) ? d.draws.pick(whole) : d.anyType();
          const shape = d.shape();
          // PyTorch writes to elements that share memory if they do not change, and by masked_fill_ (deprecated).
          const isDistinct = name === 'maskedFill' || (name === 'nanToNum' && !isFloat(dtype));
          const x = d.tensor(shape, { dtype, grad: false, ...(isDistinct ? { domain: 'distinct' } : {}) });
          d.callInPlace(`${name}_`, x, ...rest(d, name, shape, dtype));
        },
      },
    ]),
);
