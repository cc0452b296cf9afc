// Elementwise arithmetic of reductions. Narrow floats, of 16 and 8 bits, are accumulated in float32; every other type
// in itself. Integer sums and products wrap; min and max return NaN when either side is NaN.
//
// Each instruction set has a table of kernels (level.h); the functions below use the best one that the processor has.
// All tables give the same bits.
#pragma once

#include <cstddef>

#include "base/target.h"
#include "coll/op.h"

namespace ringwise::coll {

/// Returns the element type of the accumulator for a reduction over `dtype`.
constexpr DType accumulator_of(DType dtype) { return is_narrow(dtype) ? DType::Float32 : dtype; }

struct ReduceKernels {
  /// Computes accumulator[i] = input[i].
  void (*widen)(DType, std::byte* accumulator, const std::byte* input, size_t count);
  /// Computes accumulator[i] = accumulator[i] ∘ input[i]; avg and premulSum add.
  void (*accumulate)(DType, ReduceOp, std::byte* accumulator, const std::byte* input, size_t count);
  /// Computes accumulator[i] = a[i] ∘ b[i]. `accumulator` may alias `a` or `b`, except for narrow floats.
  void (*join)(DType, ReduceOp, std::byte* accumulator, const std::byte* a, const std::byte* b, size_t count);
  /// Computes first[i] = second[i] = a[i] ∘ b[i], for avg their mean. Not for narrow floats. `first` or `second` may
  /// alias `a` or `b`.
  void (*join_twice)(DType, ReduceOp, std::byte* first, std::byte* second, const std::byte* a, const std::byte* b,
                     size_t count);
  /// Computes output[i] = accumulator[i], divided by `size` for avg. `output` may be the accumulator, except for narrow
  /// floats.
  void (*narrow)(DType, ReduceOp, int size, std::byte* output, const std::byte* accumulator, size_t count);
  /// Computes output[i] = input[i] × factor, for floating types.
  void (*scale)(DType, double factor, std::byte* output, const std::byte* input, size_t count);
};

/// Returns the table of instruction set `cap`, or of the best one that the processor has if that is less.
const ReduceKernels& reduce_kernels(CpuLevel cap = CpuLevel::Avx512);

void widen(DType dtype, std::byte* accumulator, const std::byte* input, size_t count);
void accumulate(DType dtype, ReduceOp op, std::byte* accumulator, const std::byte* input, size_t count);
void narrow(DType dtype, ReduceOp op, int size, std::byte* output, const std::byte* accumulator, size_t count);
void scale(DType dtype, double factor, std::byte* output, const std::byte* input, size_t count);

/// Reduces `size` sources, in their order, into each of `output_count` outputs. An output may be identical to a source
/// but must not overlap one otherwise. Each element passes through the cache once.
void combine(DType dtype, ReduceOp op, const std::byte* const* sources, int size, std::byte* const* outputs,
             int output_count, size_t count);

}  // namespace ringwise::coll
