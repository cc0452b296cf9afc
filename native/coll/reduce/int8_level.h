// The kernels of int8.h for one instruction set; included by level_<name>.cc behind level.h. No include guard, no
// includes.

namespace ringwise::coll::RINGWISE_LEVEL {

constexpr uint8_t kNaNScale = 255;

float power_of_two(uint32_t exponent) { return std::bit_cast<float>(exponent << 23); }

/// Returns the scale of a block whose largest magnitude has these bits. The addition carries from 127.5/128 of a power
/// of two on, because the largest element would then round to 128 steps.
uint8_t scale_of(uint32_t largest) {
  const uint32_t exponent = (largest + 0x10000u) >> 23;
  if (exponent >= kNaNScale) return kNaNScale;
  return static_cast<uint8_t>(exponent > 7 ? exponent - 6 : 1);
}

uint8_t scale_of(const float* block) {
  uint32_t largest = 0;
  for (size_t i = 0; i < kInt8Block; ++i) largest = std::max(largest, std::bit_cast<uint32_t>(block[i]) & 0x7fffffffu);
  return scale_of(largest);
}

/// Adding 1.5 · 2^23 rounds to the nearest integer, ties to even, and leaves the integer in the lowest bits.
constexpr float kRounder = 0x1.8p23f;

void round_block(const float* block, uint8_t* scale, int8_t* steps) {
  *scale = scale_of(block);
  if (*scale == kNaNScale) {
    std::memset(steps, 0, kInt8Block);  // 0 · infinity is NaN
    return;
  }
  const float inverse = power_of_two(254u - *scale);
  for (size_t i = 0; i < kInt8Block; ++i) {
    steps[i] = static_cast<int8_t>(std::bit_cast<uint32_t>(block[i] * inverse + kRounder));
  }
}

void lose_block(const float* block, float* residual) {
  const uint8_t scale = scale_of(block);
  if (scale == kNaNScale) return;
  const float step = power_of_two(scale), inverse = power_of_two(254u - scale);
  for (size_t i = 0; i < kInt8Block; ++i) {
    residual[i] = block[i] - (block[i] * inverse + kRounder - kRounder) * step;
  }
}

void int8_pack(const float* values, const float* residual, uint8_t* scales, int8_t* steps, size_t count) {
  float block[kInt8Block] = {};
  for (size_t first = 0; first < count; first += kInt8Block) {
    const size_t length = std::min(kInt8Block, count - first);
    const float* source = values + first;
    if (residual != nullptr && length == kInt8Block) {
      for (size_t i = 0; i < kInt8Block; ++i) block[i] = source[i] + residual[first + i];
      source = block;
    } else if (length < kInt8Block) {
      std::memset(block, 0, sizeof block);
      for (size_t i = 0; i < length; ++i) block[i] = residual == nullptr ? source[i] : source[i] + residual[first + i];
      source = block;
    }
    round_block(source, scales + first / kInt8Block, steps + first);
  }
}

void int8_keep_loss(const float* values, float* residual, size_t count) {
  float block[kInt8Block];
  for (size_t first = 0; first < count; first += kInt8Block) {
    const size_t length = std::min(kInt8Block, count - first);
    float* const kept = residual + first;
    if (length == kInt8Block) {
      for (size_t i = 0; i < kInt8Block; ++i) block[i] = values[first + i] + kept[i];
      lose_block(block, kept);
      continue;
    }
    float last[kInt8Block] = {};
    std::memset(block, 0, sizeof block);
    for (size_t i = 0; i < length; ++i) block[i] = values[first + i] + (last[i] = kept[i]);
    lose_block(block, last);
    std::memcpy(kept, last, length * sizeof(float));
  }
}

void int8_add(const uint8_t* scales, const int8_t* steps, float* sums, size_t count) {
  for (size_t first = 0; first < count; first += kInt8Block) {
    const float step = power_of_two(scales[first / kInt8Block]);
    const size_t length = std::min(kInt8Block, count - first);
    for (size_t i = first; i < first + length; ++i) sums[i] += static_cast<float>(steps[i]) * step;
  }
}

void int8_unpack(const uint8_t* scales, const int8_t* steps, float divisor, float* output, size_t count) {
  for (size_t first = 0; first < count; first += kInt8Block) {
    const float step = power_of_two(scales[first / kInt8Block]);
    const size_t length = std::min(kInt8Block, count - first);
    for (size_t i = first; i < first + length; ++i) output[i] = static_cast<float>(steps[i]) * step / divisor;
  }
}

constexpr Int8Kernels kInt8Kernels{int8_pack, int8_keep_loss, int8_add, int8_unpack};

}  // namespace ringwise::coll::RINGWISE_LEVEL
