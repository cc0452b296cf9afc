/** Gives an object methods of its own, and returns a function that gives it those back that it had. */
export function replaceMethods<T extends object>(target: T, methods: Partial<T>): () => void {
  const before = Object.keys(methods).map(
    (name) => [name, Object.getOwnPropertyDescriptor(target, name)] as const,
  );
  Object.assign(target, methods);
  return () => {
    for (const [name, descriptor] of before) {
      if (descriptor === undefined) Reflect.deleteProperty(target, name);
      else Object.defineProperty(target, name, descriptor);
    }
  };
}
