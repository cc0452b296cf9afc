// The arithmetic of reproducible sums: addends become integers on a grid of their element, sums of these are rounded
// once. The method, its limits and a plain implementation: packages/collectives/src/reproducible/. float32, float64,
// float16 and bfloat16; all instruction sets give the same bits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/dtype.h"
#include "base/target.h"

namespace ringwise::coll {

/// Exponents are uint16_t for float64 and uint8_t for the others. float64 has `count` upper words, then `count` lower.
struct GridKernels {
  /// exponents[i] = max(exponents[i], that of input[i])
  void (*raise)(DType, const std::byte* input, void* exponents, size_t count);
  /// words[i] += input[i] on the grid of exponents[i]
  void (*add)(DType, const std::byte* input, const void* exponents, int64_t* words, size_t count);
  /// output[i] = words[i] / divisor, where each is the sum of `addends` addends
  void (*finish)(DType, const int64_t* words, const void* exponents, int64_t addends, double divisor, std::byte* output,
                 size_t count);
};

/// The table of `cap`, or of the best level where the processor has less.
const GridKernels& grid_kernels(CpuLevel cap = CpuLevel::Avx512);

}  // namespace ringwise::coll
