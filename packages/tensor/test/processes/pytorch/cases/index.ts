// Makes all cases of a seed.
import type { Case } from '../case.ts';
import { Draft } from '../draft.ts';
import { Draws } from '../draws.ts';
import { arrays } from './arrays/arrays.ts';
import { creation } from './arrays/creation.ts';
import { indexing } from './arrays/indexing.ts';
import { lookups } from './arrays/lookups.ts';
import { views } from './arrays/views.ts';
import { writes } from './arrays/writes.ts';
import { elementwise } from './elementwise/elementwise.ts';
import { expressions } from './elementwise/expressions.ts';
import { functions } from './elementwise/functions.ts';
import { functionsInPlace } from './elementwise/functions-in-place.ts';
import { inPlace } from './elementwise/in-place.ts';
import { given } from './given/given.ts';
import { losses } from './losses/losses.ts';
import { moreLosses } from './losses/more-losses.ts';
import { structured } from './losses/structured.ts';
import { layers } from './networks/layers.ts';
import { modules } from './networks/modules.ts';
import { sequences } from './networks/sequences.ts';
import { transformers } from './networks/transformers.ts';
import { oddities } from './oddities.ts';
import { linalg } from './products/linalg.ts';
import { matrices } from './products/matrices.ts';
import { products } from './products/products.ts';
import { reductions } from './reduced/reductions.ts';
import { slopes } from './reduced/slopes.ts';
import { statistics } from './reduced/statistics.ts';
import { spatial } from './spatial/spatial.ts';
import { spatialModules } from './spatial/spatial-modules.ts';
import { volumes } from './spatial/volumes.ts';

export interface Maker {
  /** Draws the inputs and the call of one case. */
  readonly draw: (draft: Draft) => void;
  /** Number of drawn cases in a run. Default 10. */
  readonly count?: number;
  /** Whether rounding errors may grow, or may in 16 bits; the oracle then reports how far. Default false. */
  readonly isUnsteady?: boolean | 'halves';
}
export type Makers = Readonly<Record<string, Maker>>;

/** The makers of each file in the folders here. PyTorch's answers are stored in a file for each of these names. */
const groups = {
  arrays,
  products,
  statistics,
  slopes,
  elementwise,
  views,
  reductions,
  lookups,
  indexing,
  writes,
  matrices,
  linalg,
  losses,
  layers,
  modules,
  sequences,
  transformers,
  moreLosses,
  creation,
  inPlace,
  spatial,
  spatialModules,
  volumes,
  structured,
  functions,
  functionsInPlace,
  expressions: { expression: { draw: expressions, count: 210, isUnsteady: true } },
} satisfies Record<string, Makers>;

const makers: Makers = Object.assign({}, ...Object.values(groups));

/** Returns the name of an op's group. */
export const groupOf = (op: string): string =>
  Object.entries<Makers>(groups).find(([, makersOfGroup]) => op in makersOfGroup)![0];

export const ops: readonly string[] = Object.keys(makers);

/** The relative change of float inputs that stands for a few roundings, by the dtype of the first input. */
const rounding: Readonly<Record<string, number>> = {
  float64: 2 ** -45,
  float32: 2 ** -21,
  float16: 2 ** -11,
  bfloat16: 2 ** -8,
};

function drawn(name: string, seed: string, { draw, isUnsteady }: Maker, index: number): Case {
  const draft = new Draft(new Draws(`${seed}/${name}`), index);
  draw(draft);
  const { inputs, steps, compares } = draft;
  const { dtype } = inputs[0] ?? {};
  const mayGrow = isUnsteady === 'halves' ? dtype === 'float16' || dtype === 'bfloat16' : isUnsteady;
  const unsteady = mayGrow && dtype !== undefined ? rounding[dtype] : undefined;
  return {
    name,
    inputs,
    steps,
    compares,
    tags: [...draft.tags],
    ...(unsteady === undefined ? {} : { unsteady }),
  };
}

/**
 * Returns the cases of one op: first those of given/ and oddities.ts, which are the same for every seed, then drawn
 * ones.
 */
export function casesOf(op: string, seed: string): Case[] {
  const maker = makers[op]!;
  return [
    ...[...(given[op] ?? []), ...(oddities[op] ?? [])].map((draw, i) =>
      drawn(`${op}:given${i}`, '', { ...maker, draw }, i),
    ),
    ...Array.from({ length: maker.count ?? 10 }, (_, i) => drawn(`${op}:${i}`, seed, maker, i)),
  ];
}
