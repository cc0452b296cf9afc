// Checks of options objects: all names are known, and flags are booleans. Numbers are checked where they are
// used.
import { groupAsOptions, outOfRange, unknownOptions } from './errors.ts';
import { unknownOption } from './option-names.ts';

/**
 * Our options by their names in other libraries. Names that differ from ours only in case, _ or - are recognized
 * without an entry.
 */
const foreignNames: Readonly<Record<string, string>> = {
  collate_fn: 'collate',
  collateFn: 'collate',
  generator: 'seed',
  num_replicas: 'replicas',
  numReplicas: 'replicas',
  prefetch_factor: 'prefetch',
  prefetchFactor: 'prefetch',
  sep: 'delimiter',
  timeout: 'timeoutMs',
  workers: 'numWorkers',
  world_size: 'replicas',
  worldSize: 'replicas',
};

/** Advice for options of other libraries that do not exist here, and for options that belong to another call. */
const hints: Readonly<Record<string, string>> = {
  initWorker: "Export it from the data set's module.",
  multiprocessing_context: 'Workers are threads.',
  worker_init_fn: "Export initWorker from the data set's module.",
};

/** Advice for options that must say the share of a rank, and do not. */
export const shareHint = 'Pass { replicas: group.size, rank: group.rank }.';

/** Returns all names of an options interface; the type makes sure that none is missing. */
export const optionNames = <O>(names: { readonly [Name in keyof O]-?: true }): readonly string[] =>
  Object.keys(names);

/** Returns the options, or {} for undefined. Throws ERR_DATA_ARGUMENT for names that are not in `known`. */
export function checkedOptions<O extends object>(
  what: string,
  options: O | undefined,
  known: readonly string[],
): O {
  const takesShare = known.includes('replicas');
  if (takesShare && typeof (options as { allReduce?: unknown } | undefined | null)?.allReduce === 'function')
    throw groupAsOptions(what);
  const ours = Object.entries(foreignNames).filter(([, name]) => known.includes(name));
  const fault = unknownOption(options, known, Object.fromEntries(ours));
  if (fault === null) return options ?? ({} as O);
  const name = /^unknown option '(.*?)'/.exec(fault)?.[1] ?? '';
  const hint = takesShare && name === '' ? shareHint : undefined;
  throw unknownOptions(what, fault, Object.hasOwn(hints, name) ? hints[name] : hint);
}

export function checkFlag(what: string, value: unknown): void {
  if (typeof value !== 'boolean') throw outOfRange(what, 'true or false', value);
}

export function checkFunction(what: string, value: unknown): void {
  if (typeof value !== 'function') throw outOfRange(what, 'a function', value);
}

/** Checks that `value`, such as a sampler, is iterable. */
export function checkIterable(
  what: string,
  value: unknown,
  expected = 'an iterable, such as a sampler or an array',
): void {
  const isIterable = typeof value === 'object' && value !== null && Symbol.iterator in value;
  if (!isIterable) throw outOfRange(what, expected, value);
}
