// 8-bit floats as bit patterns: float8_e4m3fn (4 bits of exponent, 3 of fraction; no infinity) and float8_e5m2 (5 and
// 2). They follow the OCP specification "8-bit floating point" in its saturating mode, like CUDA's conversions: values
// that are too large, including infinities, become the largest number. Conversions round to nearest even.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "base/half.h"

namespace ringwise {

struct Float8E4M3 {
  uint8_t bits;
};

struct Float8E5M2 {
  uint8_t bits;
};

inline float to_float(Float8E4M3 value) {
  const uint32_t sign = static_cast<uint32_t>(value.bits & 0x80u) << 24;
  const uint32_t rest = value.bits & 0x7fu;
  if (rest == 0x7fu) return std::bit_cast<float>(sign | 0x7fc00000u);
  // Zero and subnormals: rest × 2^-9 is exact in float32.
  const uint32_t magnitude =
      rest < 8 ? std::bit_cast<uint32_t>(static_cast<float>(rest) * 0x1p-9f) : (rest << 20) + (120u << 23);
  return std::bit_cast<float>(sign | magnitude);
}

/// Converts a float8_e5m2, which is the upper byte of a float16.
inline float to_float(Float8E5M2 value) { return to_float(Half{static_cast<uint16_t>(value.bits << 8)}); }

/// Returns the bits of the nearest number of a format, which is given by its fraction bits, its bias and the bits of
/// its largest number.
template <uint32_t kFraction, uint32_t kBias, uint32_t kLargest>
uint8_t to_float8_bits(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 24) & 0x80u;
  const uint32_t rest = bits & 0x7fffffffu;
  if (rest > 0x7f800000u) return static_cast<uint8_t>(sign | 0x7fu);  // NaN
  constexpr uint32_t kShift = 23 - kFraction;
  uint32_t rounded;
  if (rest < (128 - kBias) << 23) {  // subnormal result: let the adder of float32 do the rounding
    constexpr uint32_t kAdder = (151 - kBias - kFraction) << 23;
    rounded = std::bit_cast<uint32_t>(std::bit_cast<float>(rest) + std::bit_cast<float>(kAdder)) - kAdder;
  } else {
    rounded = (rest - ((127 - kBias) << 23) + (1u << (kShift - 1)) - 1 + ((rest >> kShift) & 1u)) >> kShift;
  }
  return static_cast<uint8_t>(sign | std::min(rounded, kLargest));
}

inline Float8E4M3 to_float8_e4m3(float value) { return {to_float8_bits<3, 7, 0x7e>(value)}; }
inline Float8E5M2 to_float8_e5m2(float value) { return {to_float8_bits<2, 15, 0x7b>(value)}; }

}  // namespace ringwise
