// Compresses float32 to int8: blocks of 32 elements share a power of two as their scale, as in MXINT8 ("OCP
// Microscaling Formats (MX) Specification", version 1.0, 2023). The scale is the smallest with which the largest
// element of the block rounds to at most 127 steps (that format's own rule would cut it off), at least 2^-126. So:
// - an element is rounded to the nearest step, ties to even, and a step above 2^-126 is at most 1/63.75 of the largest
//   element;
// - steps times scale, and the loss of the rounding, are exact in float32, so all instruction sets give the same bits;
// - a block with NaN, infinity or a magnitude of at least 127.5 · 2^121 becomes 32 NaN: its scale is 255, infinity.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/target.h"

namespace ringwise::coll {

inline constexpr size_t kInt8Block = 32;
constexpr size_t int8_blocks(size_t count) { return (count + kInt8Block - 1) / kInt8Block; }

/// The kernels of one instruction set. Scales are biased float32 exponents, one per block. Steps are stored as whole
/// blocks, the last one padded with zeros.
struct Int8Kernels {
  /// Packs values[i] + residual[i], or values[i] if `residual` is null.
  void (*pack)(const float* values, const float* residual, uint8_t* scales, int8_t* steps, size_t count);
  /// Sets residual[i] to the loss of pack() with the same arguments. Blocks that become NaN keep their residual.
  void (*keep_loss)(const float* values, float* residual, size_t count);
  /// Adds the packed values to `sums`.
  void (*add)(const uint8_t* scales, const int8_t* steps, float* sums, size_t count);
  /// Sets output[i] to the packed value divided by `divisor`.
  void (*unpack)(const uint8_t* scales, const int8_t* steps, float divisor, float* output, size_t count);
};

/// Returns the kernels of level `cap`, or of the best level that the processor has if that is lower.
const Int8Kernels& int8_kernels(CpuLevel cap = CpuLevel::Avx512);

}  // namespace ringwise::coll
