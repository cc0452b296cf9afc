// The promise of a call whose await was forgotten. Its members would be undefined, and the engine's error, such as
// "group.allReduce is not a function", does not name the cause.

/**
 * Returns a function that makes a promise throw, with a sentence, when it is used as the object that it resolves with:
 * when a member of `prototype`, or one of `names`, is read. It changes the promise and returns it. `what` is the name
 * of the object in the errors, `call` the call that was not awaited.
 * @internal
 */
export function refusingMembers(
  { what, call, names }: { readonly what: string; readonly call: string; readonly names: readonly string[] },
  prototype: object,
  error: (member: string, fault: string) => Error,
): <T>(promise: Promise<T>) => Promise<T> {
  const refusing = Object.create(Promise.prototype) as object;
  for (const name of [...Object.getOwnPropertyNames(prototype), ...names]) {
    if (name in Promise.prototype) continue;
    const get = (): never => {
      const fault = `${call} gives a promise, which was not awaited; expected const ${what} = await ${call}`;
      throw error(`${what}.${name}`, fault);
    };
    Object.defineProperty(refusing, name, { get, configurable: true });
  }
  return (promise) => Object.setPrototypeOf(promise, refusing) as typeof promise;
}
