// float16 (IEEE 754 binary16) and bfloat16 as bit patterns, converted to and from float32, round to nearest even.
#pragma once

#include <bit>
#include <cstdint>

namespace ringwise {

struct Half {
  uint16_t bits;
};

struct BFloat {
  uint16_t bits;
};

inline float to_float(BFloat value) { return std::bit_cast<float>(static_cast<uint32_t>(value.bits) << 16); }

inline BFloat to_bfloat(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return {static_cast<uint16_t>((bits >> 16) | 0x40u)};  // keep NaN a NaN
  return {static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16)};
}

inline float to_float(Half value) {
  const uint32_t sign = static_cast<uint32_t>(value.bits & 0x8000u) << 16;
  const uint32_t rest = value.bits & 0x7fffu;
  if (rest == 0x7c00u) return std::bit_cast<float>(sign | 0x7f800000u);
  if (rest > 0x7c00u) return std::bit_cast<float>(sign | 0x7fc00000u | ((rest & 0x3ffu) << 13));  // NaN, made quiet
  if (rest < 0x400u) {  // zero and subnormals: rest × 2^-24 is exact in float32
    const float magnitude = static_cast<float>(rest) * 0x1p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
  }
  return std::bit_cast<float>(sign | ((rest + 0x1c000u) << 13));
}

inline Half to_half(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint16_t sign = static_cast<uint16_t>((bits >> 16) & 0x8000u);
  const uint32_t rest = bits & 0x7fffffffu;
  if (rest > 0x7f800000u) return {static_cast<uint16_t>(sign | 0x7e00u)};
  if (rest >= 0x477ff000u) return {static_cast<uint16_t>(sign | 0x7c00u)};  // rounds beyond the largest number, 65504
  if (rest < 0x38800000u) {  // subnormal result: a float32 addition rounds it
    const float shifted = std::bit_cast<float>(rest) + 0.5f;
    return {static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000u))};
  }
  const uint32_t rounded = rest + 0xfffu + ((rest >> 13) & 1u);
  return {static_cast<uint16_t>(sign | ((rounded - 0x38000000u) >> 13))};
}

}  // namespace ringwise
