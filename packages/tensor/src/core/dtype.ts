// Element types: their layout in memory, and the type that results from two. The rules are PyTorch's.

/** The type of a tensor's elements. */
export type DType = 'float32' | 'float64' | 'float16' | 'bfloat16' | 'int32' | 'int64' | 'uint8' | 'bool';
/**
 * The typed arrays of elements. float16 and bfloat16 are bit patterns in a Uint16Array, bool is 0 and 1 in a
 * Uint8Array.
 */
export type HostArray = Float32Array | Float64Array | Uint16Array | Int32Array | BigInt64Array | Uint8Array;

interface HostArrayConstructor {
  readonly BYTES_PER_ELEMENT: number;
  new (count: number): HostArray;
  new (buffer: ArrayBufferLike, byteOffset: number, count: number): HostArray;
}

interface DTypeInfo {
  readonly bytes: number;
  /** The number in native/base/dtype.h. */
  readonly code: number;
  readonly kind: 'bool' | 'integer' | 'float';
  readonly array: HostArrayConstructor;
  /** The range of finite elements. A bool accepts any number. */
  readonly least: number | bigint;
  readonly most: number | bigint;
}

const upTo = (most: number): { readonly least: number; readonly most: number } => ({ least: -most, most });

export const dtypeInfo: Readonly<Record<DType, DTypeInfo>> = {
  float32: { bytes: 4, code: 0, kind: 'float', array: Float32Array, ...upTo((2 - 2 ** -23) * 2 ** 127) },
  float64: { bytes: 8, code: 1, kind: 'float', array: Float64Array, ...upTo(Number.MAX_VALUE) },
  float16: { bytes: 2, code: 2, kind: 'float', array: Uint16Array, ...upTo(65504) },
  bfloat16: { bytes: 2, code: 3, kind: 'float', array: Uint16Array, ...upTo((2 - 2 ** -7) * 2 ** 127) },
  int32: { bytes: 4, code: 6, kind: 'integer', array: Int32Array, least: -(2 ** 31), most: 2 ** 31 - 1 },
  int64: {
    bytes: 8,
    code: 7,
    kind: 'integer',
    array: BigInt64Array,
    least: -(2n ** 63n),
    most: 2n ** 63n - 1n,
  },
  uint8: { bytes: 1, code: 8, kind: 'integer', array: Uint8Array, least: 0, most: 255 },
  bool: { bytes: 1, code: 12, kind: 'bool', array: Uint8Array, ...upTo(Infinity) },
};

export const dtypes = Object.keys(dtypeInfo) as readonly DType[];
export const isDType = (name: unknown): name is DType =>
  typeof name === 'string' && Object.hasOwn(dtypeInfo, name);
export const bytesOf = (dtype: DType): number => dtypeInfo[dtype].bytes;
export const isFloat = (dtype: DType): boolean => dtypeInfo[dtype].kind === 'float';
/** Returns whether an element can hold `value`, without its fraction for integers. Floats hold infinities and NaN. */
export function holds(dtype: DType, value: number | bigint): boolean {
  const { kind, least, most } = dtypeInfo[dtype];
  if (kind === 'bool' || (kind === 'float' && !Number.isFinite(Number(value)))) return true;
  const whole = typeof value === 'number' && kind === 'integer' ? Math.trunc(value) : value;
  return whole >= least && whole <= most;
}
export const isHalf = (dtype: DType): boolean => dtype === 'float16' || dtype === 'bfloat16';

/**
 * Returns the dtype of an array for which none was given: float16 for a Uint16Array, uint8 for a Uint8Array. Undefined
 * if no dtype has such arrays.
 */
export const dtypeOfArray = (array: unknown): DType | undefined =>
  dtypes.find((dtype) => array instanceof dtypeInfo[dtype].array);

/** Order of promotion: of two dtypes the later one results, but float32 of float16 and bfloat16. */
const order: readonly DType[] = [
  'bool',
  'uint8',
  'int32',
  'int64',
  'float16',
  'bfloat16',
  'float32',
  'float64',
];

/** Returns the dtype to which an operation converts both. */
export function promoteTypes(a: DType, b: DType): DType {
  if (a === b) return a;
  if (isHalf(a) && isHalf(b)) return 'float32';
  return order.indexOf(a) > order.indexOf(b) ? a : b;
}

/** The part of a tensor that resultType needs. */
export interface Typed {
  readonly dtype: DType;
  readonly rank: number;
}

const numberType = (value: number): DType =>
  Number.isInteger(value) && holds('int64', value) ? 'int64' : 'float32';
const kinds = ['bool', 'integer', 'float'];
const kindRank = (dtype: DType): number => kinds.indexOf(dtypeInfo[dtype].kind);

/**
 * Returns the joint dtype of operands. Tensors with dimensions decide; tensors without dimensions, and after them
 * numbers, count only if they are of a higher kind (bool < integer < float). A number without a fraction is an integer
 * unless it exceeds int64.
 */
export function resultType(...operands: readonly (Typed | number)[]): DType {
  let result: DType | null = null;
  const take = (types: readonly DType[]): void => {
    if (types.length === 0) return;
    const type = types.reduce(promoteTypes);
    if (result === null) result = type;
    else if (kindRank(type) > kindRank(result)) result = promoteTypes(result, type);
  };
  const tensors = operands.filter((operand) => typeof operand !== 'number');
  take(tensors.filter((operand) => operand.rank > 0).map((operand) => operand.dtype));
  take(tensors.filter((operand) => operand.rank === 0).map((operand) => operand.dtype));
  take(operands.filter((operand) => typeof operand === 'number').map(numberType));
  return result ?? 'float32';
}
