// How this package tells what is wrong with a file. It does not know the path, nor who reads: the caller makes its own
// error of these.

/** A fault of a file. The message is the end of a sentence about the file, such as "it is truncated". */
export class FormatError extends Error {
  override readonly name: string = 'FormatError';
}

export function check(isTrue: boolean, problem: string): asserts isTrue {
  if (!isTrue) throw new FormatError(problem);
}
