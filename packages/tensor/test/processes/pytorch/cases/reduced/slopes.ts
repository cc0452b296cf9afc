// Cases of slopes and areas of curves, of counts in bins, and of matrices of powers.
import type { Arg } from '../../case.ts';
import { type Draft, nothing } from '../../draft.ts';
import { options } from '../arrays/arrays.ts';
import type { Makers } from '../index.ts';

function gradient(d: Draft): void {
  const { draws } = d;
  const dtype = draws.chance(0.8)
    ? draws.pick(['float32', 'float64', 'float32'] as const)
    : draws.pick(['int32', 'int64', 'uint8'] as const);
  const shape = Array.from({ length: draws.int(1, 3) }, () => draws.int(draws.chance(0.05) ? 1 : 3, 4));
  const x = d.tensor(shape, { dtype, domain: 'finite' });
  const dims = draws.chance(0.5) ? nothing : draws.shuffled([...shape.keys()]).slice(0, draws.int(1, 3));
  const along = dims === nothing ? [...shape.keys()] : (dims as number[]);
  const placesOf = (dim: number): Arg => {
    const start = draws.int(-2, 2);
    const values = Array.from({ length: shape[dim]! }, (_, i) => start + i * 1.5 + draws.int(0, 2) / 4);
    return d.given(values, [shape[dim]!], dtype === 'float64' ? 'float64' : 'float32', false);
  };
  const spacing = draws.pick<() => Arg>([
    () => nothing,
    () => draws.pick([2, 0.5]),
    () => along.map(() => draws.pick([2, 0.5, 1])),
    () => along.map(placesOf),
  ])();
  d.call('gradient', x, dims, options({ spacing, edgeOrder: draws.pick([nothing, 1, 2]) }));
}

function cumulativeTrapezoid(d: Draft): void {
  const { draws } = d;
  const shape = d.shape(draws.chance(0.05) ? 0 : 1, 3);
  const dtype = d.anyType();
  const y = d.tensor(shape, { dtype, domain: 'finite' });
  const dim = d.dim(shape.length);
  const x = draws.chance(0.4)
    ? draws.pick<Arg>([nothing, 2, 0.5])
    : d.tensor(draws.chance(0.6) ? [shape.at(dim) ?? 1] : shape, { domain: 'finite' });
  d.call('cumulativeTrapezoid', y, x, dim);
}

function histogram(d: Draft): void {
  const { draws } = d;
  const dtype = draws.pick(['float32', 'float64', 'float32', 'float64', 'float16', 'int64'] as const);
  const shape = d.shape();
  const hasRange = draws.chance(0.5);
  const domain = draws.chance(0.2) && hasRange ? 'special' : draws.pick(['coarse', [-4, 6]] as const);
  const x = d.tensor(shape, { dtype, domain, grad: false });
  const edges = draws.chance(0.35);
  const bins: Arg = edges
    ? d.given(draws.pick([[-2, 0, 0.5, 3], [0, 1], [-1, 1, 1, 2], [1]]), [], 'float32', false)
    : draws.pick([4, 1, 8, 0]);
  if (edges) {
    const own = d.inputs.pop()!;
    d.inputs.push({ ...own, dtype: draws.chance(0.9) ? dtype : 'float64', shape: [own.values.length] });
  }
  const weight = draws.chance(0.5)
    ? nothing
    : d.tensor(shape, { dtype: draws.chance(0.9) ? dtype : 'float32', domain: 'positive', grad: false });
  const range =
    hasRange && !edges
      ? draws.pick([
          [-2, 6],
          [1, 5],
          [3, 1],
          [2, 2],
        ])
      : nothing;
  d.call('histogram', x, bins, options({ range, weight, density: draws.pick<Arg>([nothing, true]) }));
}

function vander(d: Draft): void {
  const { draws } = d;
  const shape = draws.chance(0.05) ? [2, 2] : [draws.int(0, 4)];
  const x = d.tensor(shape, { dtype: d.anyType(), domain: 'finite' });
  d.call('vander', x, draws.pick([nothing, 0, 1, 2, 4]), draws.pick<Arg>([nothing, true]));
}

export const slopes: Makers = {
  gradient: { draw: gradient, count: 30 },
  cumulativeTrapezoid: { draw: cumulativeTrapezoid, count: 18 },
  histogram: { draw: histogram, count: 30 },
  vander: { draw: vander, count: 16 },
};
