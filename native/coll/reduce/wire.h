// What a wire that is not full makes of float32. Packed values count in elements of four bytes, like everything else of
// such an operation. bfloat16: two to a word. int8: the scales of all blocks, then their steps (see reduce/int8.h).
//
// Error feedback, for int8: an operation with a residual rounds values + residual in place of the values, and what is
// lost by that is the residual afterwards, to be handed over with the next values of the same buffer. (Seide et al.,
// "1-bit stochastic gradient descent", 2014; Karimireddy et al., "Error feedback fixes SignSGD", 2019.)
#pragma once

#include <cstddef>

#include "coll/op.h"

namespace ringwise::coll {

/// "int8"
const char* name_of(Wire wire);

size_t packed_words(Wire wire, size_t count);

/// packed = values, rounded; or values + residual, where that is not null.
void pack(Wire wire, const std::byte* values, const std::byte* residual, std::byte* packed, size_t count);
/// residual = what pack() of the same values and residual has lost; int8 only.
void keep_loss(const std::byte* values, std::byte* residual, size_t count);
/// sums += packed; `count` of the sums.
void add_packed(Wire wire, const std::byte* packed, std::byte* sums, size_t count);
/// output = packed / divisor; `count` of the output.
void unpack(Wire wire, const std::byte* packed, int divisor, std::byte* output, size_t count);

}  // namespace ringwise::coll
