// Tests float32 packed as bytes with a scale per block: the size of the errors, that packed values and residuals
// together lose nothing, blocks with NaN, and that all instruction sets give the same bits.
#include "coll/reduce/int8.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "test/check.h"

using namespace ringwise;
using namespace ringwise::test;
using namespace ringwise::coll;

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

struct Packed {
  std::vector<uint8_t> scales;
  std::vector<int8_t> steps;

  Packed(const std::vector<float>& values, const std::vector<float>* residual, CpuLevel level = CpuLevel::Avx512)
      : scales(int8_blocks(values.size())), steps(int8_blocks(values.size()) * kInt8Block, 99) {
    int8_kernels(level).pack(values.data(), residual == nullptr ? nullptr : residual->data(), scales.data(),
                             steps.data(), values.size());
  }

  std::vector<float> unpacked(size_t count, float divisor = 1, CpuLevel level = CpuLevel::Avx512) const {
    std::vector<float> output(count);
    int8_kernels(level).unpack(scales.data(), steps.data(), divisor, output.data(), count);
    return output;
  }
};

std::vector<float> round_trip(const std::vector<float>& values) {
  return Packed(values, nullptr).unpacked(values.size());
}

/// Draws values with one random magnitude per block, from subnormal to about 2^115; a tenth of the values is much
/// smaller.
std::vector<float> drawn(size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::uniform_int_distribution<int> exponent(-149, 115);
  std::vector<float> values(count);
  int of_block = 0;
  for (size_t i = 0; i < count; ++i) {
    if (i % kInt8Block == 0) of_block = exponent(random);
    values[i] = std::ldexp(normal(random), of_block - (i % 10 == 3 ? 20 : 0));
  }
  return values;
}

}  // namespace

TEST("an element is off by at most half a step, and a step is at most 1/63.75 of the block's largest") {
  for (const size_t count : {1, 31, 32, 33, 5000}) {
    const std::vector<float> values = drawn(count, static_cast<unsigned>(count));
    const Packed packed(values, nullptr);
    const std::vector<float> output = packed.unpacked(count);
    for (size_t i = 0; i < count; ++i) {
      const size_t first = i / kInt8Block * kInt8Block;
      float largest = 0x1p-120f;  // for largest values below 127.5 · 2^-126 the step stays 2^-126
      for (size_t j = first; j < std::min(count, first + kInt8Block); ++j)
        largest = std::max(largest, std::abs(values[j]));
      const double step = std::ldexp(1.0, packed.scales[i / kInt8Block] - 127);
      CHECK(step <= static_cast<double>(largest) / 63.75);
      CHECK(std::abs(static_cast<double>(values[i]) - static_cast<double>(output[i])) <= step / 2);
    }
    for (size_t i = count; i < packed.steps.size(); ++i) CHECK_EQ(static_cast<int>(packed.steps[i]), 0);
  }
}

TEST("ties go to even, and the largest element decides between two scales") {
  std::vector<float> values(kInt8Block);
  values[0] = 64;  // gives the block a step of 1
  for (size_t i = 1; i < kInt8Block; ++i) values[i] = static_cast<float>(i) - 15.5f;
  const std::vector<float> output = round_trip(values);
  for (size_t i = 1; i < kInt8Block; ++i) CHECK_EQ(output[i], std::nearbyint(values[i]));
  using Floats = std::vector<float>;
  CHECK(round_trip({127, 1}) == (Floats{127, 1}));
  CHECK(round_trip({std::nextafter(127.5f, 0.f), 1}) == (Floats{127, 1}));
  CHECK(round_trip({127.5f, 1}) == (Floats{128, 0}));  // the step is 2
}

TEST("blocks of zeros stay zeros") {
  const std::vector<float> output = round_trip(std::vector<float>(70, -0.f));
  for (const float value : output) CHECK_EQ(std::bit_cast<uint32_t>(value), 0u);
}

TEST("the unpacked value and the residual add up to the value that was packed, to the bit") {
  for (const size_t count : {1, 32, 45, 3000}) {
    const std::vector<float> values = drawn(count, 7);
    std::vector<float> residual = drawn(count, 7);
    std::mt19937 random(3);
    for (size_t i = 0; i < count; ++i)
      residual[i] = values[i] * std::uniform_real_distribution<float>(-0.01f, 0.01f)(random);
    std::vector<float> together(count);
    for (size_t i = 0; i < count; ++i) together[i] = values[i] + residual[i];
    const std::vector<float> output = Packed(values, &residual).unpacked(count);
    int8_kernels().keep_loss(values.data(), residual.data(), count);
    for (size_t i = 0; i < count; ++i) CHECK_EQ(output[i] + residual[i], together[i]);
    CHECK(output == round_trip(together));
  }
}

TEST(
    "a block with NaN, infinity or more than the scales reach is NaN, its neighbours are not, and its residual stays") {
  for (const float bad : {kNaN, -kNaN, kInfinity, -kInfinity, 0x1.FEp127f, std::numeric_limits<float>::max()}) {
    std::vector<float> values(3 * kInt8Block + 5, 1.f);
    values[40] = bad;
    values[3 * kInt8Block + 4] = bad;
    std::vector<float> residual(values.size(), 0.25f);
    const std::vector<float> output = Packed(values, &residual).unpacked(values.size());
    int8_kernels().keep_loss(values.data(), residual.data(), values.size());
    for (size_t i = 0; i < values.size(); ++i) {
      const size_t block = i / kInt8Block;
      CHECK_EQ(std::isnan(output[i]), block == 1 || block == 3);
      CHECK_EQ(residual[i], block == 1 || block == 3 ? 0.25f : 0.f);
    }
  }
  CHECK(round_trip({std::nextafter(0x1.FEp127f, 0.f)}) == std::vector<float>{0x1.FCp127f});
}

TEST("all levels give the same bits") {
  for (const size_t count : {1, 31, 64, 77, 4096}) {
    std::vector<float> values = drawn(count, 11);
    if (count > 70) values[70] = kInfinity;
    const std::vector<float> old_residual = drawn(count, 12), old_sums = drawn(count, 13);
    const auto results = [&](CpuLevel level) {
      const Packed packed(values, &old_residual, level);
      std::vector<float> residual = old_residual, sums = old_sums;
      int8_kernels(level).keep_loss(values.data(), residual.data(), count);
      int8_kernels(level).add(packed.scales.data(), packed.steps.data(), sums.data(), count);
      std::vector<uint32_t> bits(packed.scales.begin(), packed.scales.end());
      bits.insert(bits.end(), packed.steps.begin(), packed.steps.end());
      for (const auto& floats : {residual, sums, packed.unpacked(count, 3, level)}) {
        for (const float value : floats) bits.push_back(std::bit_cast<uint32_t>(value));
      }
      return bits;
    };
    const auto expected = results(CpuLevel::Baseline);
    CHECK(results(CpuLevel::Avx2) == expected);
    CHECK(results(CpuLevel::Avx512) == expected);
  }
}

int main() { return run_all(); }
