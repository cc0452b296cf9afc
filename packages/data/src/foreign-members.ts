// Members that similar classes of other libraries have under names that do not exist here. They throw a sentence that
// names our member; otherwise a property would silently be undefined, and a call would only fail as "not a function".
// They are not part of the types.

/** Our replacements, by the other library's name. */
export type Advice = Readonly<Record<string, string>>;

export interface ForeignMembers {
  readonly methods?: Advice;
  /** Members that throw as soon as they are read. */
  readonly properties?: Advice;
  /** Whether setting one of `properties` throws, too. Otherwise the object gets an own property of that name. */
  readonly isSetRefused?: boolean;
}

/**
 * Adds the members to the prototype, and the snake_case names of the prototype's own members. `what` is the name of the
 * object in the errors. `error` makes an error from the member's name and the rest of the sentence, without its full
 * stop.
 */
export function refuseForeign(
  prototype: object,
  what: string,
  error: (member: string, fault: string) => Error,
  { methods = {}, properties = {}, isSetRefused = false }: ForeignMembers,
): void {
  const refused = (name: string, instead: string) =>
    error(`${what}.${name}`, `there is no member of this name; expected ${instead}`);

  function addMethod(name: string, instead: string): void {
    const value = () => {
      throw refused(`${name}()`, instead);
    };
    Object.defineProperty(prototype, name, { value, writable: true, configurable: true });
  }

  function addProperty(name: string, instead: string): void {
    Object.defineProperty(prototype, name, {
      get(): never {
        throw refused(name, instead);
      },
      set(value: unknown) {
        if (isSetRefused) throw refused(name, instead);
        Object.defineProperty(this, name, { value, writable: true, enumerable: true, configurable: true });
      },
      configurable: true,
    });
  }

  const own = membersOf(prototype);
  for (const [name, isMethod] of own) {
    const snake = name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
    if (snake === name || !/^[a-z]/.test(name) || own.has(snake)) continue;
    if (isMethod) addMethod(snake, `${name}()`);
    else addProperty(snake, name);
  }
  for (const [name, instead] of Object.entries(methods)) addMethod(name, instead);
  for (const [name, instead] of Object.entries(properties)) addProperty(name, instead);
}

/** Returns the members of a prototype and of those that it inherits from; true for methods. */
function membersOf(prototype: object): Map<string, boolean> {
  const members = new Map<string, boolean>();
  for (let at = prototype; at !== Object.prototype; at = Object.getPrototypeOf(at) as object) {
    for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(at)))
      if (name !== 'constructor') members.set(name, typeof value === 'function');
  }
  return members;
}
