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

using Rows = std::vector<std::vector<std::byte>>;

/// Returns rows of random bits. One in `one_in` values keeps its random exponent, and the others get the exponent of 1.
/// Some values are 0 or -0.
Rows random_rows(DType dtype, int size, size_t count, uint32_t seed, uint32_t one_in) {
  const size_t bytes = byte_size(dtype);
  const uint64_t one = dtype == DType::Float64 ? 0x3ff : dtype == DType::Float16 ? 0xf : 0x7f;
  const int fraction = dtype == DType::Float64 ? 52 : dtype == DType::Float32 ? 23 : dtype == DType::Float16 ? 10 : 7;
  const uint64_t exponent_mask = dtype == DType::Float64 ? 0x7ff : dtype == DType::Float16 ? 0x1f : 0xff;
  Rows rows(size, std::vector<std::byte>(count * bytes));
  uint64_t state = seed;
  for (auto& row : rows) {
    for (size_t i = 0; i < count; ++i) {
      state = state * 6364136223846793005ull + 1442695040888963407ull;
      uint64_t bits = (state >> 13) ^ (state << 40);
      if ((state >> 33) % one_in != 0) bits = (bits & ~(exponent_mask << fraction)) | (one << fraction);
      if ((state >> 37) % 11 == 0 || i % 13 == 0) bits = i % 2 == 0 ? 0 : uint64_t{1} << (8 * bytes - 1);
      std::memcpy(row.data() + i * bytes, &bits, bytes);
    }
  }
  return rows;
}

/// Adds up `rows` with the words of one instruction set.
Sums sums_of(CpuLevel level, DType dtype, const Rows& rows, size_t count, double divisor) {
  const auto& kernels = grid_kernels(level);
  Sums sums{std::vector<uint16_t>(count), std::vector<int64_t>(2 * count), std::vector<uint64_t>(count)};
  for (const auto& row : rows) kernels.raise(dtype, row.data(), sums.exponents.data(), count);
  for (const auto& row : rows) kernels.add(dtype, row.data(), sums.exponents.data(), sums.words.data(), count);
  auto* output = reinterpret_cast<std::byte*>(sums.output.data());
  kernels.finish(dtype, sums.words.data(), sums.exponents.data(), static_cast<int64_t>(rows.size()), divisor, output,
                 count);
  return sums;
}

}  // namespace

TEST("all levels give the same words and results") {
  for (const DType dtype : {DType::Float32, DType::Float64, DType::Float16, DType::BFloat16}) {
    for (const size_t count : {size_t{1}, size_t{7}, size_t{512}, size_t{3001}}) {
      for (uint32_t seed = 0; seed < 20; ++seed) {
        const uint32_t one_in = seed < 10 ? 1 : 100;
        const Rows rows = random_rows(dtype, 3, count, seed, one_in);
        const double divisor = seed % 2 == 0 ? 1 : 3;
        const Sums expected = sums_of(CpuLevel::Baseline, dtype, rows, count, divisor);
        for (const CpuLevel level : {CpuLevel::Avx2, CpuLevel::Avx512}) {
          const Sums found = sums_of(level, dtype, rows, count, divisor);
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
    CHECK_EQ(sums_of(CpuLevel::Avx512, dtype, Rows(3), 0, 1).output.size(), 0u);
  }
}

TEST("the sum of sources that one rank reads has the bits of the words' sum") {
  for (const DType dtype : {DType::Float32, DType::Float64, DType::Float16, DType::BFloat16}) {
    for (const int size : {1, 2, 3, 8, 512, 513}) {
      for (const size_t count : {size_t{1}, size_t{511}, size_t{1100}}) {
        for (uint32_t seed = 0; seed < (size > 8 ? 2u : 12u); ++seed) {
          // Exponents are those of 1, or any: then blocks have infinities, NaN and numbers near the limits.
          const Rows rows = random_rows(dtype, size, count, seed, seed % 3 == 0 ? 1 : seed % 3 == 1 ? 5000 : 1000000);
          const bool averages = seed % 2 == 1;
          const Sums expected = sums_of(CpuLevel::Baseline, dtype, rows, count, averages ? size : 1);
          for (const CpuLevel level : {CpuLevel::Baseline, CpuLevel::Avx2, CpuLevel::Avx512}) {
            Rows copies = rows;
            std::vector<const std::byte*> sources;
            for (const auto& row : copies) sources.push_back(row.data());
            // One output is a source, as in an all-reduce in place.
            std::vector<std::byte> other(count * byte_size(dtype));
            std::byte* const outputs[] = {copies[static_cast<size_t>(size) / 2].data(), other.data()};
            const auto op = averages ? coll::ReduceOp::Avg : coll::ReduceOp::Sum;
            grid_kernels(level).combine(dtype, op, sources.data(), size, outputs, 2, count);
            CHECK(std::memcmp(outputs[0], expected.output.data(), other.size()) == 0);
            CHECK(std::memcmp(outputs[1], expected.output.data(), other.size()) == 0);
          }
        }
      }
    }
  }
}

int main() { return run_all(); }
