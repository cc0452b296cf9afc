// Delegates the wrapper's methods to its module. They are typed only if the module has them.
import { noMethod } from '../errors.ts';

/** The type of method `Name` of `M`; never if there is none. */
export type MethodOf<M, Name extends string> = M extends {
  readonly [N in Name]: infer F extends (...args: never[]) => unknown;
}
  ? F
  : never;

/** The type of method `Name` of `M` with result `Self`; never if there is none. */
export type ChainedMethodOf<M, Name extends string, Self> = M extends {
  readonly [N in Name]: (...args: infer A) => unknown;
}
  ? (...args: A) => Self
  : never;

/** Calls a method of `module`. Throws ERR_DDP_INVALID if it has none of that name. */
export function callOn(module: unknown, name: string, args: readonly unknown[]): unknown {
  const method = (module as Partial<Record<string, unknown>>)[name];
  if (typeof method !== 'function') throw noMethod(name);
  return method.apply(module, args);
}
