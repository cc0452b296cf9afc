// Formats the stack of an error only when it is read. Under --enable-source-maps, Node.js then parses the source map of
// every file in the stack, which costs tens of milliseconds of the processor the first time. Ranks that continue after
// the loss of another one handle errors whose stacks are never read.
import { captureDeeply } from './deep-stack.ts';

/** Returns the lines to append to this stack. */
export type Addition = (stack: string) => readonly string[];

/** The lines to append to stacks that have not been read yet. */
const pending = new WeakMap<Error, Addition[]>();

/**
 * Makes `error` format its stack only when it is read. Call it in a constructor, after name and message are set; the
 * constructor's frames are left out.
 */
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
  // Deleted first, because redefining the property that V8 made would read it.
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

/** Appends lines to the stack of an error: when the stack is first read, if stackLate() has deferred it, else now. */
export function addToStack(error: Error, addition: Addition): void {
  const additions = pending.get(error);
  if (additions) additions.push(addition);
  else error.stack = joined(error.stack ?? '', addition);
}

const joined = (stack: string, addition: Addition): string => [stack, ...addition(stack)].join('\n');
