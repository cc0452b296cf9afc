// Packs float32 values for wires that are not full. Packed memory is counted in words of four bytes, the size of an
// element of the operation. bfloat16: two values per word. int8: the scales of all blocks, then their steps (see
// reduce/int8.h).
//
// Error feedback, for int8: an operation with a residual rounds values + residual instead of the values. Afterwards the
// residual holds the loss of that rounding, to be added to the next values of the same buffer. (Seide et al., "1-bit
// stochastic gradient descent", 2014; Karimireddy et al., "Error feedback fixes SignSGD", 2019.)
#pragma once

#include <cstddef>

#include "coll/op.h"

namespace ringwise::coll {

/// Returns the wire's name, such as "int8".
const char* name_of(Wire wire);

/// Returns the length of `count` packed values in words.
size_t packed_words(Wire wire, size_t count);

/// Packs the rounded values, or values + residual if `residual` is not null.
void pack(Wire wire, const std::byte* values, const std::byte* residual, std::byte* packed, size_t count);
/// Sets `residual` to the loss of pack() with the same values and residual; int8 only.
void keep_loss(const std::byte* values, std::byte* residual, size_t count);
/// Adds `count` packed values to `sums`.
void add_packed(Wire wire, const std::byte* packed, std::byte* sums, size_t count);
/// Sets `count` values of `output` to the packed values divided by `divisor`.
void unpack(Wire wire, const std::byte* packed, int divisor, std::byte* output, size_t count);

}  // namespace ringwise::coll
