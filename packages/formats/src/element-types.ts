// The element types of files. A type has one name in all formats; each format has its own code for it.
import { check } from './errors.ts';
import { excerpt, quoted } from './text.ts';

/** Bytes of one element. */
export const elementBytes = {
  float32: 4,
  float64: 8,
  float16: 2,
  bfloat16: 2,
  int32: 4,
  int64: 8,
  uint8: 1,
  /** 0 is false, anything else true. */
  bool: 1,
  int8: 1,
  int16: 2,
  uint16: 2,
  uint32: 4,
  uint64: 8,
  float8e4m3: 1,
  float8e5m2: 1,
  float8e4m3fnuz: 1,
  float8e5m2fnuz: 1,
  float8e8m0: 1,
} as const;

/** An element type of an array in a file, such as 'float32'. */
export type ElementType = keyof typeof elementBytes;

/** Which headers a reader accepts; it refuses all others. */
export interface Accepted {
  /** In the order in which error messages list them. Types for which the format has no code are ignored. */
  readonly types: readonly ElementType[];
  /** Maximum number of dimensions. Default: no limit. */
  readonly maxDims?: number;
  /** Whether at least one dimension is required, because the first one counts samples. Default false. */
  readonly needsRows?: boolean;
}

/** Returns the number of elements of `shape`, 1 for []. The result is rounded if it is above 2^53. */
export const countOf = (shape: readonly number[]): number =>
  shape.reduce((product, size) => product * size, 1);

/**
 * Throws a FormatError unless `type` is one of `known` and `shape` a list of sizes, so that no file is written that
 * nothing can read. `what` is the array in the message.
 */
export function checkWritable(
  what: string,
  { type, shape }: { readonly type: unknown; readonly shape: unknown },
  known: readonly string[],
): void {
  check(
    known.includes(type as string),
    `${what} cannot have the type ${quoted(String(type))}; expected one of ${known.join(', ')}`,
  );
  const isShape = Array.isArray(shape) && shape.every((size) => Number.isSafeInteger(size) && size >= 0);
  check(
    isShape,
    `${what} cannot have the shape ${excerpt(`[${String(shape)}]`)}; expected a list of whole numbers`,
  );
}
