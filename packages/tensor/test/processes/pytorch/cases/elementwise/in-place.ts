// Cases of operations that write into their first argument, which may be a view. The whole tensor that the view is of
// is compared with PyTorch's, too.
import type { Arg } from '../../case.ts';
import { allTypes, type Draft } from '../../draft.ts';
import type { Makers } from '../index.ts';

function combined(op: string) {
  return (d: Draft): void => {
    const { draws } = d;
    const shape = d.shape();
    const dtype = d.anyType();
    const x = d.tensor(shape, { dtype, grad: false });
    const other = (): Arg => {
      if (draws.chance(0.3)) {
        const number = draws.pick([2, -1, 0.5, 3]);
        if (number < 0 && dtype === 'uint8') d.tags.add('number below 0');
        return number;
      }
      if (draws.chance(0.06)) return x;
      return d.tensor(d.narrower(shape), {
        dtype: draws.chance(0.6) ? dtype : draws.pick(allTypes),
        domain: 'finite',
        grad: false,
      });
    };
    d.callInPlace(op, x, other());
  };
}

function fill(d: Draft): void {
  const x = d.tensor(d.shape(), { dtype: d.anyType(), grad: false });
  d.callInPlace('fill_', x, d.draws.pick<Arg>([0, 1, 3, 2.5]));
}

export const inPlace: Makers = {
  ...Object.fromEntries(
    ['add_', 'sub_', 'mul_', 'div_', 'copy_'].map((op) => [op, { draw: combined(op), count: 12 }]),
  ),
  fill_: { draw: fill },
  zero_: { draw: (d) => d.callInPlace('zero_', d.tensor(d.shape(), { dtype: d.anyType(), grad: false })) },
};
