// float32 as bytes with a scale: blocks of 32 elements that share a power of two, as in MXINT8 ("OCP Microscaling
// Formats (MX) Specification", version 1.0, 2023). The scale is the smallest with which the largest element of the
// block rounds to at most 127 steps (that format's own rule would cut it off), at least 2^-126. So:
// - an element is off by at most half a step, to nearest, ties to even, and a step is at most 1/63.75 of the largest;
// - steps times scale and what rounding has lost are float32 without another rounding, on all instruction sets;
// - a block with NaN, infinity or anything from 127.5 · 2^121 on becomes 32 times NaN: it has the scale 255, infinity.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/target.h"

namespace ringwise::coll {

inline constexpr size_t kInt8Block = 32;
constexpr size_t int8_blocks(size_t count) { return (count + kInt8Block - 1) / kInt8Block; }

/// Scales are exponents as float32 has them, one a block; steps are whole blocks, filled up with zeros.
struct Int8Kernels {
  /// Rounds values[i] + residual[i]; without a residual, which is null then, values[i].
  void (*pack)(const float* values, const float* residual, uint8_t* scales, int8_t* steps, size_t count);
  /// residual[i] = what pack of the same loses. Blocks that become NaN keep theirs.
  void (*keep_loss)(const float* values, float* residual, size_t count);
  /// sums[i] += what was packed
  void (*add)(const uint8_t* scales, const int8_t* steps, float* sums, size_t count);
  /// output[i] = what was packed / divisor
  void (*unpack)(const uint8_t* scales, const int8_t* steps, float divisor, float* output, size_t count);
};

/// The table of `cap`, or of the best level where the processor has less.
const Int8Kernels& int8_kernels(CpuLevel cap = CpuLevel::Avx512);

}  // namespace ringwise::coll
