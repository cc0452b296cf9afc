// Calls a verb in either of its two forms.
import type { Group } from '../src/group/group.ts';

/** 'sync' calls the Sync form of the verbs. */
export type Mode = 'async' | 'sync';

type Verbs = { [K in keyof Group]: K extends `${infer V}Sync` ? V : never }[keyof Group] & keyof Group;

/** Calls a verb. Resolves with its value when it has ended. */
export async function invoke<V extends Verbs>(
  group: Group,
  mode: Mode,
  verb: V,
  ...args: Parameters<Group[V]>
): Promise<Awaited<ReturnType<Group[V]>>> {
  const name = (mode === 'sync' ? `${verb}Sync` : verb) as V;
  const call = group[name] as (...args: unknown[]) => unknown;
  return (await call.apply(group, args)) as Awaited<ReturnType<Group[V]>>;
}
