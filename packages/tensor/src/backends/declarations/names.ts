// The names that attributes of kernels choose from. native/generate makes C++ enumerations of the same order.

/**
 * Elementwise operations. Comparisons, inRange and logic give 1 or 0, and sign(NaN) is 0. NaN propagates through the
 * others, except that reluGrad(g, NaN) = g, pow is IEEE 754's (1 to any power and any number to the power 0 are 1), and
 * where(c, a, b) reads only the chosen one of a and b. xGrad(g, v) is the gradient of x's input, with g that of its
 * output and v the output (relu, sigmoid, tanh) or the input (gelu, silu). geluTanh is gelu with the distribution
 * function approximated by a tanh. mulAdd(a, b, c) = a·b + c, clamp(a, low, high), inRange(a, low, high) with both ends
 * included. Integers wrap around; the operations of `floatMapOps` are not defined on them.
 *
 * logAddExp(a, b) = log(e^a + e^b). xlogy(a, b) = a·log b, and 0 where a is 0 and b is a number. remainder has the sign
 * of b, fmod that of a; floorDiv rounds the quotient down. Integers divided by 0 give 0. The operations of
 * `integerMapOps` are defined on integers and bool only; gcd is not negative. shiftLeft by less than 0 or by more bits
 * than there are gives 0, shiftRight then gives 0 or −1.
 */
export const mapOps = [
  ...([
    'neg',
    'abs',
    'sign',
    'exp',
    'log',
    'sqrt',
    'rsqrt',
    'square',
    'sin',
    'cos',
    'tanh',
    'sigmoid',
  ] as const),
  ...(['relu', 'erf', 'gelu', 'geluTanh', 'silu', 'floor', 'ceil', 'round', 'trunc', 'logicalNot'] as const),
  ...(['add', 'sub', 'mul', 'div', 'pow', 'max', 'min', 'eq', 'ne', 'lt', 'le'] as const),
  ...(['logicalAnd', 'logicalOr', 'logicalXor'] as const),
  ...(['reluGrad', 'sigmoidGrad', 'tanhGrad', 'geluGrad', 'geluTanhGrad', 'siluGrad'] as const),
  ...(['where', 'mulAdd', 'clamp', 'inRange'] as const),
  ...(['log1p', 'expm1', 'log2', 'log10', 'exp2', 'tan', 'asin', 'acos', 'atan', 'sinh', 'cosh'] as const),
  ...(['asinh', 'acosh', 'atanh', 'erfc', 'erfinv'] as const),
  ...(['atan2', 'hypot', 'copysign', 'logAddExp', 'xlogy', 'remainder', 'fmod', 'floorDiv'] as const),
  ...(['bitAnd', 'bitOr', 'bitXor', 'shiftLeft', 'shiftRight', 'gcd'] as const),
] as const;
export type MapOp = (typeof mapOps)[number];

/** The operations that are defined on floating dtypes only. */
export const floatMapOps: ReadonlySet<MapOp> = new Set([
  ...([
    'exp',
    'log',
    'sqrt',
    'rsqrt',
    'sin',
    'cos',
    'tanh',
    'sigmoid',
    'erf',
    'gelu',
    'geluTanh',
    'silu',
  ] as const),
  ...([
    'floor',
    'ceil',
    'round',
    'trunc',
    'div',
    'sigmoidGrad',
    'tanhGrad',
    'geluGrad',
    'geluTanhGrad',
  ] as const),
  ...(['log1p', 'expm1', 'log2', 'log10', 'exp2', 'tan', 'asin', 'acos', 'atan', 'sinh', 'cosh'] as const),
  ...(['asinh', 'acosh', 'atanh', 'erfc', 'erfinv', 'atan2', 'hypot', 'copysign', 'logAddExp'] as const),
  ...(['xlogy', 'siluGrad'] as const),
]);

/** The operations that are defined on integers and bool only. */
export const integerMapOps: ReadonlySet<MapOp> = new Set([
  ...(['bitAnd', 'bitOr', 'bitXor', 'shiftLeft', 'shiftRight', 'gcd'] as const),
]);

export const reduceOps = ['sum', 'mean', 'prod', 'max', 'min'] as const;
export type ReduceOp = (typeof reduceOps)[number];

/**
 * The ways in which scatter combines an element with the values written to it, in their order along the indices.
 * replace: the last one stays. min and max: NaN propagates.
 */
export const scatterOps = ['add', 'replace', 'mul', 'min', 'max'] as const;
export type ScatterOp = (typeof scatterOps)[number];

/** Activations that a fused linear layer can apply. */
export const activations = ['none', 'relu', 'gelu', 'geluTanh'] as const;
export type Activation = (typeof activations)[number];

/**
 * uniform: float32 in [low, high), one word each. normal: float32, mean 0 and variance 1, two words for two numbers.
 * integers: int64 in [low, high), at most 2^32 different ones, one word each. bits: int64 in [0, 2^63), two words each.
 */
export const randomKinds = ['uniform', 'normal', 'integers', 'bits'] as const;
export type RandomKind = (typeof randomKinds)[number];

/** The optimisers that have a kernel. */
export const optimizerKinds = ['sgd', 'adam', 'rmsprop', 'lion'] as const;
export type OptimizerKind = (typeof optimizerKinds)[number];
