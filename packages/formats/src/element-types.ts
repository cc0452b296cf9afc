// Types of elements as files store them. They have one name in all formats; each format has codes of its own.

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

export type ElementType = keyof typeof elementBytes;

/** The headers that a reader accepts. It refuses all others. */
export interface Accepted {
  /** Error messages list them in this order. Types that the format has no code for are left out. */
  readonly types: readonly ElementType[];
  /** Default: any number. */
  readonly maxDims?: number;
  /** The first dimension counts samples, so there must be one. Default false. */
  readonly needsRows?: boolean;
}

/** Returns the number of elements of `shape`, which may be beyond the exact integers; 1 for []. */
export const countOf = (shape: readonly number[]): number =>
  shape.reduce((product, size) => product * size, 1);
