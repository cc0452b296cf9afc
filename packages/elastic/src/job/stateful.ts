// Objects with a state, in the forms that our packages use, and their states as plain values.
import { checkOptions, shown } from '../check.ts';
import { invalidArgument } from '../errors.ts';

/** An object whose state is sent to a joining process: a schedule, a generator, a sampler, averages of weights. */
export type Stateful =
  | { readonly stateDict: () => unknown; readonly loadStateDict: (state: never) => unknown }
  | { readonly state: () => unknown; readonly setState: (state: never) => unknown }
  | { readonly state: () => unknown; readonly load: (state: never) => unknown };

/** Throws ERR_ELASTIC_INVALID if an object has no state that can be read and set. */
export function checkStateful(what: string, value: unknown): void {
  const has = (name: string) => typeof (value as Record<string, unknown> | null)?.[name] === 'function';
  if (has('stateDict') && has('loadStateDict')) return;
  if (has('state') && (has('setState') || has('load'))) return;
  const expected = 'an object with stateDict() and loadStateDict(), or state() and setState() or load()';
  throw invalidArgument(what, expected, shown(value));
}

export function stateOf(object: Stateful): unknown {
  return 'stateDict' in object ? object.stateDict() : object.state();
}

export function setStateOf(object: Stateful, state: unknown): void {
  if ('loadStateDict' in object) object.loadStateDict(state as never);
  else if ('setState' in object) object.setState(state as never);
  else object.load(state as never);
}

export function checkExtra(extra: unknown): void {
  checkOptions('ddp: extra', extra, Object.keys((extra as object | null) ?? {}));
  for (const [name, value] of Object.entries((extra as object | null) ?? {}))
    checkStateful(`ddp: extra.${name}`, value);
}
