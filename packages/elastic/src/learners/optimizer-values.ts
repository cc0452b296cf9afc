// The values of an optimizer that are not arrays: learning rates and other options of its groups, and numbers of steps.
// The program may change them between steps, so a learner receives them with each step. The arrays change only in
// steps.
import { packState } from '@ringwise/ddp';
import type { ElasticOptimizer } from '../job/trained.ts';

/** Returns the values as JSON, with a placeholder for each array. */
export function optimizerValues(optimizer: ElasticOptimizer): string {
  return packState(optimizer.stateDict()).header;
}

/** Sets these values in an optimizer. Its arrays do not change. */
export function setOptimizerValues(optimizer: ElasticOptimizer, values: string): void {
  if (optimizerValues(optimizer) === values) return;
  const state = withOwnArrays(JSON.parse(values), optimizer.stateDict());
  optimizer.loadStateDict(state as never);
}

type Tree = Readonly<Record<string, unknown>>;

const isTree = (value: unknown): value is Tree => typeof value === 'object' && value !== null;

/** Returns `values` with the arrays of `own` for the placeholders. Arrays that `own` does not have are left out. */
function withOwnArrays(values: unknown, own: unknown): unknown {
  if (!isTree(values)) return values;
  if ('$bigint' in values) return BigInt(values.$bigint as string);
  if ('$number' in values) return Number(values.$number);
  if ('$array' in values || '$tensor' in values) return own;
  const under = (key: string | number) => (isTree(own) ? own[key] : undefined);
  if (Array.isArray(values)) return values.map((each, index) => withOwnArrays(each, under(index)));
  const entries = Object.entries(values).map(
    ([key, each]) => [key, withOwnArrays(each, under(key))] as const,
  );
  return Object.fromEntries(entries.filter(([, each]) => each !== undefined));
}
