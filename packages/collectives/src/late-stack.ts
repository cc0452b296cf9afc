// Puts the stack of an error into words when it is read, and not before. Under --enable-source-maps, Node.js parses the
// source map of every file in a stack at that moment, which costs tens of milliseconds of the processor the first time.
// Ranks that go on after another one was lost handle errors whose stack nothing reads.
import { captureDeeply } from './deep-stack.ts';

/** Returns the lines to append to this stack. */
export type Addition = (stack: string) => readonly string[];

/** What is appended to the stacks that nothing has read yet. */
const pending = new WeakMap<Error, Addition[]>();

/** Makes the stack of `error` a late one. For a constructor, once name and message are set; its frames are left out. */
export function stackLate(error: Error): void {
  // A hook such as Error.prepareStackTrace gets this object, and sees the error's name, message and fields in it.
  const captured = Object.create(error) as { readonly stack: string };
  captureDeeply(captured, error.constructor);
  const additions: Addition[] = [];
  pending.set(error, additions);
  const settle = (stack: unknown): void => {
    pending.delete(error);
    Object.defineProperty(error, 'stack', { value: stack, writable: true, configurable: true });
  };
  // To redefine the property that V8 made would read it.
  Reflect.deleteProperty(error, 'stack');
  Object.defineProperty(error, 'stack', {
    configurable: true,
    get: () => {
      const stack = additions.reduce(joined, captured.stack);
      settle(stack);
      return stack;
    },
    set: settle,
  });
}

/** Appends lines to the stack of an error: when it is read if it is a late one that nothing has read, else now. */
export function addToStack(error: Error, addition: Addition): void {
  const additions = pending.get(error);
  if (additions) additions.push(addition);
  else error.stack = joined(error.stack ?? '', addition);
}

const joined = (stack: string, addition: Addition): string => [stack, ...addition(stack)].join('\n');
