// Elementwise arithmetic of reductions. Halves are accumulated in float32; every other type in itself.
// Integer sums and products wrap; min and max return NaN when either side is NaN.
#pragma once

#include <cstddef>

#include "coll/op.h"

namespace ringwise::coll {

/// Element type of the accumulator for a reduction over `dtype`.
constexpr DType accumulator_of(DType dtype) { return is_half(dtype) ? DType::Float32 : dtype; }

/// accumulator[i] = input[i]
void widen(DType dtype, std::byte* accumulator, const std::byte* input, size_t count);

/// accumulator[i] = accumulator[i] ∘ input[i]; avg and premulSum add.
void accumulate(DType dtype, ReduceOp op, std::byte* accumulator, const std::byte* input, size_t count);

/// output[i] = accumulator[i], divided by `size` for avg.
void narrow(DType dtype, ReduceOp op, int size, std::byte* output, const std::byte* accumulator, size_t count);

/// output[i] = input[i] × factor, for floating types.
void scale(DType dtype, double factor, std::byte* output, const std::byte* input, size_t count);

}  // namespace ringwise::coll
