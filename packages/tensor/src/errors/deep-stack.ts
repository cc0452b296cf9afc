// Room in the stack of an error for the lines of the program, which lie behind those of the packages: Node.js keeps ten
// lines, and as many functions may be between optimizer or backward and the place of the error.
const frames = 50;

/**
 * Captures the present stack for `holder.stack`, without `above` and the functions that it called. A larger limit of
 * the program, or a limit of 0, holds, and so does that of a frozen Error, as under --frozen-intrinsics.
 */
export function captureDeeply(holder: object, above: unknown): void {
  const { stackTraceLimit } = Error;
  const isRaised = stackTraceLimit > 0 && stackTraceLimit < frames;
  if (isRaised) Reflect.set(Error, 'stackTraceLimit', frames);
  Error.captureStackTrace(holder, above as new () => Error);
  if (isRaised) Reflect.set(Error, 'stackTraceLimit', stackTraceLimit);
}
