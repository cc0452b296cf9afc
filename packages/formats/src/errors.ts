// How this package tells what is wrong with a file. It knows neither the path nor the reader: the caller makes its own
// error of these.

/** A fault of a file. The message is the end of a sentence about the file, such as "it is truncated". */
export class FormatError extends Error {
  override readonly name: string = 'FormatError';
}

/**
 * A fault of a header, which is told in two ways: by the message, and by what was expected and what the file has.
 * The message is short and safe to print; the other two may be as long as the header, and hold control characters.
 */
export class HeaderError extends FormatError {
  readonly expected: string;
  readonly got: string;

  constructor(problem: string, expected: string, got: string, cause?: unknown) {
    super(problem, cause === undefined ? {} : { cause });
    this.expected = expected;
    this.got = got;
  }
}

/** Throws a FormatError with this message if the condition does not hold. */
export function check(isTrue: boolean, problem: string): asserts isTrue {
  if (!isTrue) throw new FormatError(problem);
}
