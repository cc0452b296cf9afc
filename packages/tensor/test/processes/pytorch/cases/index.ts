// Makes all cases of a seed.
import type { Case } from '../case.ts';
import { Draft } from '../draft.ts';
import { Draws } from '../draws.ts';
import { arrays } from './arrays.ts';
import { creation } from './creation.ts';
import { elementwise } from './elementwise.ts';
import { expressions } from './expressions.ts';
import { functions } from './functions.ts';
import { functionsInPlace } from './functions-in-place.ts';
import { given } from './given.ts';
import { inPlace } from './in-place.ts';
import { indexing } from './indexing.ts';
import { layers } from './layers.ts';
import { linalg } from './linalg.ts';
import { lookups } from './lookups.ts';
import { losses } from './losses.ts';
import { matrices } from './matrices.ts';
import { modules } from './modules.ts';
import { moreLosses } from './more-losses.ts';
import { products } from './products.ts';
import { reductions } from './reductions.ts';
import { sequences } from './sequences.ts';
import { spatial } from './spatial.ts';
import { spatialModules } from './spatial-modules.ts';
import { statistics } from './statistics.ts';
import { transformers } from './transformers.ts';
import { views } from './views.ts';

export interface Maker {
  /** Draws the inputs and the call of one case. */
  readonly draw: (draft: Draft) => void;
  /** Number of drawn cases in a run. Default 10. */
  readonly count?: number;
  /** Whether rounding errors may grow; the oracle then reports how far. Default false. */
  readonly isUnsteady?: boolean;
}
export type Makers = Readonly<Record<string, Maker>>;

/** The makers of each file of this folder. PyTorch's answers are stored in a file for each of these names. */
const groups = {
  arrays,
  products,
  statistics,
  elementwise,
  views,
  reductions,
  lookups,
  indexing,
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
  const unsteady = isUnsteady ? rounding[inputs[0]!.dtype] : undefined;
  return {
    name,
    inputs,
    steps,
    compares,
    tags: [...draft.tags],
    ...(unsteady === undefined ? {} : { unsteady }),
  };
}

/** Returns the cases of one op: first those of given.ts, which are the same for every seed, then drawn ones. */
export function casesOf(op: string, seed: string): Case[] {
  const maker = makers[op]!;
  return [
    ...(given[op] ?? []).map((draw, i) => drawn(`${op}:given${i}`, '', { ...maker, draw }, i)),
    ...Array.from({ length: maker.count ?? 10 }, (_, i) => drawn(`${op}:${i}`, seed, maker, i)),
  ];
}
