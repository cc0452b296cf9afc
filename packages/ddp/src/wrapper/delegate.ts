// What the wrapper offers of its module: the module's own methods, typed only where the module has them.
import { noMethod } from '../errors.ts';

/** The method `Name` of `M` as it is; never where there is none. */
export type MethodOf<M, Name extends string> = M extends {
  readonly [N in Name]: infer F extends (...args: never[]) => unknown;
}
  ? F
  : never;

/** The method `Name` of `M` that returns `Self` instead; never where there is none. */
export type ChainedMethodOf<M, Name extends string, Self> = M extends {
  readonly [N in Name]: (...args: infer A) => unknown;
}
  ? (...args: A) => Self
  : never;

/** Calls a method of `module`. Throws ERR_DDP_INVALID where it has none. */
export function callOn(module: unknown, name: string, args: readonly unknown[]): unknown {
  const method = (module as Partial<Record<string, unknown>>)[name];
  if (typeof method !== 'function') throw noMethod(name);
  return method.apply(module, args);
}
