// The layout of the scratch array that operands travel in; native/node/tensor/tensor_state.h has the same
// numbers. A walk has a pair of numbers for each of its four operands, its rank, its shape and the strides of
// each operand. A call of a dense kernel has a pair for each of its operands, twelve at most, and four
// strides for those that have some.

/** Index of the shape of a walk. */
export const shapeAt = 8;
/** Index of the strides of operands [batch, heads, rows, width]. */
export const rowStridesAt = 24;
/** Index of a call's first number, behind the longest walk: 1 + (1 + 4 operands) · 16 dimensions. */
export const numbersAt = shapeAt + 81;
