// Kernels for reproducible sums: each addend is rounded to an integer multiple of a step, which depends on the largest
// exponent of its element on all ranks, and the sum of these integers is rounded once.
// packages/collectives/src/reproducible/ explains the method and its limits and has a plain implementation. For
// float32, float64, float16 and bfloat16. All instruction sets give the same bits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/dtype.h"
#include "base/target.h"
#include "coll/op.h"

namespace ringwise::coll {

/// The kernels of one instruction set. Exponents are uint16_t for float64 and uint8_t for the other types. float64 uses
/// two words per element: `count` upper words, then `count` lower ones.
struct GridKernels {
  /// Computes exponents[i] = max(exponents[i], exponent of input[i]).
  void (*raise)(DType, const std::byte* input, void* exponents, size_t count);
  /// Computes words[i] += input[i] in steps that exponents[i] determines.
  void (*add)(DType, const std::byte* input, const void* exponents, int64_t* words, size_t count);
  /// Computes output[i] = words[i] / divisor, where words[i] is the sum of `addends` addends.
  void (*finish)(DType, const int64_t* words, const void* exponents, int64_t addends, double divisor, std::byte* output,
                 size_t count);
  /// Does all of this for addends that one rank can read: computes the sum of `size` sources, or for avg their mean,
  /// in each of `output_count` outputs. An output may be identical to a source but must not overlap one otherwise.
  void (*combine)(DType, ReduceOp, const std::byte* const* sources, int size, std::byte* const* outputs,
                  int output_count, size_t count);
};

/// Returns the kernels of level `cap`, or of the best level that the processor has if that is lower.
const GridKernels& grid_kernels(CpuLevel cap = CpuLevel::Avx512);

}  // namespace ringwise::coll
