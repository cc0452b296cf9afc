// Tests that the kernels for reproducible sums (coll/reduce/grid.h) give the same bits with all instruction sets, for
// any bit patterns. packages/collectives/test/unit/backends/grid.test.ts tests what these bits must be.
#include "coll/reduce/grid.h"

#include <cstring>
#include <vector>

#include "test/check.h"

using namespace ringwise;
using namespace ringwise::test;
using coll::grid_kernels;

namespace {

struct Sums {
  std::vector<uint16_t> exponents;
  std::vector<int64_t> words;
  std::vector<uint64_t> output;
};

/// Adds up three rows of random bits. One in `one_in` values keeps its random exponent, and the others get the exponent
/// of 1. Some values are 0 or -0.
Sums sums_of(CpuLevel level, DType dtype, size_t count, uint32_t seed, uint32_t one_in) {
  const auto& kernels = grid_kernels(level);
  Sums sums{std::vector<uint16_t>(count), std::vector<int64_t>(2 * count), std::vector<uint64_t>(count)};
  const size_t bytes = byte_size(dtype);
  const uint64_t one = dtype == DType::Float64 ? 0x3ff : dtype == DType::Float16 ? 0xf : 0x7f;
  const int fraction = dtype == DType::Float64 ? 52 : dtype == DType::Float32 ? 23 : dtype == DType::Float16 ? 10 : 7;
  const uint64_t exponent_mask = dtype == DType::Float64 ? 0x7ff : dtype == DType::Float16 ? 0x1f : 0xff;
  std::vector<std::vector<std::byte>> rows(3, std::vector<std::byte>(count * bytes));
  uint64_t state = seed;
  for (auto& row : rows) {
    for (size_t i = 0; i < count; ++i) {
      state = state * 6364136223846793005ull + 1442695040888963407ull;
      uint64_t bits = (state >> 13) ^ (state << 40);
      if ((state >> 33) % one_in != 0) bits = (bits & ~(exponent_mask << fraction)) | (one << fraction);
      if ((state >> 37) % 11 == 0) bits = i % 2 == 0 ? 0 : uint64_t{1} << (8 * bytes - 1);
      std::memcpy(row.data() + i * bytes, &bits, bytes);
    }
  }
  for (const auto& row : rows) kernels.raise(dtype, row.data(), sums.exponents.data(), count);
  for (const auto& row : rows) kernels.add(dtype, row.data(), sums.exponents.data(), sums.words.data(), count);
  const double divisor = seed % 2 == 0 ? 1 : 3;
  auto* output = reinterpret_cast<std::byte*>(sums.output.data());
  kernels.finish(dtype, sums.words.data(), sums.exponents.data(), 3, divisor, output, count);
  return sums;
}

}  // namespace

TEST("all levels give the same words and results") {
  for (const DType dtype : {DType::Float32, DType::Float64, DType::Float16, DType::BFloat16}) {
    for (const size_t count : {size_t{1}, size_t{7}, size_t{512}, size_t{3001}}) {
      for (uint32_t seed = 0; seed < 20; ++seed) {
        const uint32_t one_in = seed < 10 ? 1 : 100;
        const Sums expected = sums_of(CpuLevel::Baseline, dtype, count, seed, one_in);
        for (const CpuLevel level : {CpuLevel::Avx2, CpuLevel::Avx512}) {
          const Sums found = sums_of(level, dtype, count, seed, one_in);
          CHECK(found.exponents == expected.exponents);
          CHECK(found.words == expected.words);
          CHECK(found.output == expected.output);
        }
      }
    }
  }
}

TEST("sums of no elements have no results") {
  for (const DType dtype : {DType::Float32, DType::Float64, DType::BFloat16}) {
    CHECK_EQ(sums_of(CpuLevel::Avx512, dtype, 0, 1, 1).output.size(), 0u);
  }
}

int main() { return run_all(); }
