// Errors about the content of a file. They name neither the path nor the reader: the caller puts their message into an
// error of its own.

/** A fault in a file. The message is the end of a sentence about the file, such as "it is truncated". */
export class FormatError extends Error {
  /** Name of the class. */
  override readonly name: string = 'FormatError';
}

/**
 * A fault in a header. It is described twice: by the message, and by `expected` and `got`. The message is short, and
 * control characters of the file are escaped in it. The other two may be as long as the header and contain control
 * characters.
 */
export class HeaderError extends FormatError {
  /** What the header should have. */
  readonly expected: string;
  /** What it has. */
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
