// Cases of elementwise functions beyond arithmetic, and of their forms that write in place.
import type { Arg } from '../case.ts';
import { type Draft, floats, nothing, type TensorSpec } from '../draft.ts';
import type { Maker, Makers } from './index.ts';

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

export const functions: Makers = {
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
