// Hooks that run before and after a module's forward, and in its backward. A module with hooks gets its own `forward`,
// which calls the hooks and the class's forward, so that modules without hooks have no overhead.

import { Tensor } from '../core/tensor.ts';
import { notArguments } from '../errors.ts';
import { type BackwardHook, type BackwardPreHook, HookedCall } from './backward-hooks.ts';

/** A hook that runs before forward. May return an array that replaces the arguments, or a tensor as the only one. */
export type PreHook<M> = (module: M, args: readonly unknown[]) => readonly unknown[] | Tensor | undefined;
/** A hook that runs after forward. May return a value that replaces the result. */
export type Hook<M> = (module: M, args: readonly unknown[], output: unknown) => unknown;

type Forward = (...args: unknown[]) => unknown;
interface Hooked {
  forward: Forward;
}

/** The hooks of one module. The keys make each entry distinct, so that a function can be added twice. */
class Hooks {
  /** The module's own forward before it had hooks; undefined if it used the forward of its class. */
  readonly own: PropertyDescriptor | undefined;
  readonly before = new Map<object, PreHook<never>>();
  readonly after = new Map<object, Hook<never>>();
  readonly beforeBackward = new Map<object, BackwardPreHook<never>>();
  readonly backward = new Map<object, BackwardHook<never>>();

  constructor(own: PropertyDescriptor | undefined) {
    this.own = own;
  }

  get hasBackward(): boolean {
    return this.beforeBackward.size + this.backward.size > 0;
  }

  get isEmpty(): boolean {
    return this.before.size + this.after.size === 0 && !this.hasBackward;
  }
}
/** Returns the arguments that a hook before forward gave; undefined if it gave none. */
function argumentsOf(given: unknown): readonly unknown[] | undefined {
  if (given === undefined || given === null) return undefined;
  if (Array.isArray(given)) return given;
  if (given instanceof Tensor) return [given];
  throw notArguments(given);
}

const hooksOf = new WeakMap<object, Hooks>();

/** Returns the hooks of a module. If it has none yet, replaces its forward. */
function hooksOn(module: object): Hooks {
  const found = hooksOf.get(module);
  if (found) return found;
  const hooks = new Hooks(Object.getOwnPropertyDescriptor(module, 'forward'));
  hooksOf.set(module, hooks);
  const { forward } = module as unknown as Hooked;
  const run: Forward = (...given) => {
    let args: readonly unknown[] = given;
    for (const hook of hooks.before.values()) args = argumentsOf(hook(module as never, args)) ?? args;
    const call = hooks.hasBackward
      ? new HookedCall(module, hooks.beforeBackward.values(), hooks.backward.values())
      : null;
    if (call) args = call.takeInputs(args);
    let output = forward.apply(module, [...args]);
    for (const hook of hooks.after.values()) output = hook(module as never, args, output) ?? output;
    return call ? call.takeOutput(output) : output;
  };
  // Not enumerable, so that the module does not count it as a member.
  Object.defineProperty(module, 'forward', { value: run, configurable: true, writable: true });
  return hooks;
}

/** Adds a hook. Returns a function that removes it, and restores the forward after the last one. */
function add<H>(module: object, list: (hooks: Hooks) => Map<object, H>, hook: H): () => void {
  const hooks = hooksOn(module);
  const key = {};
  list(hooks).set(key, hook);
  return () => {
    list(hooks).delete(key);
    if (!hooks.isEmpty || hooksOf.get(module) !== hooks) return;
    hooksOf.delete(module);
    if (hooks.own) Object.defineProperty(module, 'forward', hooks.own);
    else delete (module as unknown as Partial<Hooked>).forward;
  };
}

export const addPreHook = <M extends object>(module: M, hook: PreHook<M>): (() => void) =>
  add(module, (hooks) => hooks.before, hook);
export const addHook = <M extends object>(module: M, hook: Hook<M>): (() => void) =>
  add(module, (hooks) => hooks.after, hook);
export const addBackwardPreHook = <M extends object>(module: M, hook: BackwardPreHook<M>): (() => void) =>
  add(module, (hooks) => hooks.beforeBackward, hook);
export const addBackwardHook = <M extends object>(module: M, hook: BackwardHook<M>): (() => void) =>
  add(module, (hooks) => hooks.backward, hook);
