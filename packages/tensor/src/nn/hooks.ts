// Hooks that run before and after a module's forward. A module with hooks gets its own `forward`, which calls
// the hooks and the class's forward, so that modules without hooks have no overhead.

/** Runs before forward. May return an array that replaces the arguments. */
export type PreHook<M> = (module: M, args: readonly unknown[]) => readonly unknown[] | undefined;
/** Runs after forward. May return a value that replaces the result. */
export type Hook<M> = (module: M, args: readonly unknown[], output: unknown) => unknown;

type Forward = (...args: unknown[]) => unknown;
interface Hooked {
  forward: Forward;
}

class Hooks {
  readonly before = new Map<object, PreHook<never>>();
  readonly after = new Map<object, Hook<never>>();
}
const hooksOf = new WeakMap<object, Hooks>();

function hooksOn(module: object): Hooks {
  const found = hooksOf.get(module);
  if (found) return found;
  const hooks = new Hooks();
  hooksOf.set(module, hooks);
  const { forward } = module as unknown as Hooked;
  const run: Forward = (...given) => {
    let args: readonly unknown[] = given;
    for (const hook of hooks.before.values()) args = hook(module as never, args) ?? args;
    let output = forward.apply(module, [...args]);
    for (const hook of hooks.after.values()) output = hook(module as never, args, output) ?? output;
    return output;
  };
  // Not enumerable, so that the module does not count it as a member.
  Object.defineProperty(module, 'forward', { value: run, configurable: true, writable: true });
  return hooks;
}

function add<H>(module: object, list: (hooks: Hooks) => Map<object, H>, hook: H): () => void {
  const hooks = hooksOn(module);
  const key = {};
  list(hooks).set(key, hook);
  return () => {
    list(hooks).delete(key);
    if (hooks.before.size + hooks.after.size > 0 || hooksOf.get(module) !== hooks) return;
    hooksOf.delete(module);
    delete (module as unknown as Partial<Hooked>).forward;
  };
}

export const addPreHook = <M extends object>(module: M, hook: PreHook<M>): (() => void) =>
  add(module, (hooks) => hooks.before, hook);
export const addHook = <M extends object>(module: M, hook: Hook<M>): (() => void) =>
  add(module, (hooks) => hooks.after, hook);
