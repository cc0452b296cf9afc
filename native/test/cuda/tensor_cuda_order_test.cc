// Compares running sums, sorting and sums by index with those of the CPU, with sizes around those at which the kernels
// change their layout: tiles, chunks and runs.
#include <limits>
#include <stdexcept>
#include <vector>

#include "test/cuda/tensor_cuda_twin.h"

using namespace ringwise;
using namespace ringwise::tensor;
using namespace ringwise::test;

namespace {

void expect_cumsum(DType dtype, size_t outer, size_t size, size_t inner, bool reverse) {
  Twin a(dtype, outer * size * inner), sums(dtype, a.count());
  cpu.cumsum({dtype, sums.host(), a.host(), outer, size, inner, reverse});
  gpu::kernels().cumsum({dtype, sums.device(), a.device(), outer, size, inner, reverse});
  sums.compare(0, "cumsum of " + std::string(name_of(dtype)) + " [" + std::to_string(outer) + ", " +
                      std::to_string(size) + ", " + std::to_string(inner) + "]");
}

/// Combines small integers, which are exact in every dtype and any order. `hot` is the share of the indices that are
/// equal.
void expect_scatter(ScatterOp op, DType dtype, const LookupSizes& x, double hot) {
  const size_t shorter = x.outer * x.count * x.inner, longer = x.outer * x.size * x.inner;
  Twin from(dtype, shorter), into(dtype, longer), index(DType::Int64, x.per_element ? shorter : x.count);
  for (size_t i = 0; i < shorter; i++) set(dtype, from.host(), i, static_cast<double>(below(3)) - 1);
  for (size_t i = 0; i < longer; i++) set(dtype, into.host(), i, static_cast<double>(below(9)) - 4);
  for (size_t i = 0; i < index.count(); i++) {
    const bool is_hot = static_cast<double>(below(1000)) < 1000 * hot;
    index.host<int64_t>()[i] = static_cast<int64_t>(is_hot ? x.size / 2 : below(x.size));
  }
  for (Twin* twin : {&from, &into, &index}) twin->upload();
  cpu.scatter({x, dtype, into.host(), from.host(), index.host<int64_t>(), op});
  gpu::kernels().scatter({x, dtype, into.device(), from.device(), index.device<int64_t>(), op});
  into.compare(0, "scatter " + std::to_string(static_cast<int>(op)) + " of " + std::string(name_of(dtype)) + " [" +
                      std::to_string(x.outer) + ", " + std::to_string(x.count) + ", " + std::to_string(x.inner) +
                      "] into " + std::to_string(x.size));
}

void expect_sorted(Twin& a, size_t rows, size_t count, bool descending) {
  const size_t cols = a.count() / rows;
  Twin values(a.dtype(), rows * count), indices(DType::Int64, rows * count);
  cpu.sort({a.dtype(), values.host(), indices.host<int64_t>(), a.host(), rows, count, cols, descending});
  gpu::kernels().sort(
      {a.dtype(), values.device(), indices.device<int64_t>(), a.device(), rows, count, cols, descending});
  const std::string what = "sort of " + std::string(name_of(a.dtype())) + " [" + std::to_string(rows) + ", " +
                           std::to_string(cols) + "], the first " + std::to_string(count);
  values.compare(0, what);
  indices.compare(0, what + ": indices");
}

}  // namespace

TEST("cumsum of rows, columns and slices, around the sizes of tiles and chunks") {
  // A tile has 2048 elements. On a device with two multiprocessors, a single row of 8 or more tiles, of which the last
  // may be short, is cut into chunks.
  constexpr size_t kShapes[][3] = {{1, 1, 1},      {1, 2047, 1},  {1, 2048, 1},  {1, 2049, 1},  {3, 600, 1},
                                   {700, 5, 1},    {9, 1025, 1},  {1, 16383, 1}, {1, 16384, 1}, {1, 16385, 1},
                                   {1, 40961, 1},  {2, 20000, 1}, {1, 511, 32},  {1, 513, 32},  {1, 3000, 33},
                                   {2, 4000, 2},   {3, 1500, 5},  {5, 3, 300},   {2, 1, 257},   {1, 9000, 3},
                                   {1, 100000, 1}, {0, 5, 4},     {5, 0, 4},     {5, 4, 0}};
  constexpr int kCount = sizeof kShapes / sizeof *kShapes;
  for (int round = 0; round < rounds(16 * kCount); round++) {
    const auto& [outer, size, inner] = kShapes[round % kCount];
    expect_cumsum(kTypes[(round / kCount + round) % 8], outer, size, inner, round / kCount / 8);
  }
  for (int round = 0; round < rounds(300); round++) {
    const bool is_long = below(4) == 0;
    expect_cumsum(kTypes[below(8)], 1 + below(4), 1 + below(is_long ? 5000 : 40), 1 + below(is_long ? 4 : 70),
                  below(2));
  }
}

TEST("cumsum carries infinity and NaN to the later elements alone, over chunks too") {
  constexpr size_t kSize = 30000;
  for (const bool reverse : {false, true}) {
    Twin a(DType::Float32, kSize), sums(DType::Float32, kSize);
    a.host<float>()[9000] = INFINITY;
    a.host<float>()[21000] = -INFINITY;
    a.upload();
    cpu.cumsum({DType::Float32, sums.host(), a.host(), 1, kSize, 1, reverse});
    gpu::kernels().cumsum({DType::Float32, sums.device(), a.device(), 1, kSize, 1, reverse});
    sums.compare(0, "cumsum");
  }
}

TEST("cumsum gives the same bits every time") {
  constexpr size_t kSize = 50000;
  Twin a(DType::Float32, kSize), one(DType::Float32, kSize), two(DType::Float32, kSize);
  for (size_t i = 0; i < kSize; i++) a.host<float>()[i] = std::sin(static_cast<float>(i));
  a.upload();
  gpu::kernels().cumsum({DType::Float32, one.device(), a.device(), 1, kSize, 1, false});
  gpu::kernels().cumsum({DType::Float32, two.device(), a.device(), 1, kSize, 1, false});
  gpu::current_device().download(two.host(), two.device(), kSize * sizeof(float));
  gpu::current_device().download(one.host(), one.device(), kSize * sizeof(float));
  one.upload();
  two.compare(0, "the second cumsum");
  CHECK(std::memcmp(one.host(), two.host(), kSize * sizeof(float)) == 0);
}

TEST("sort around the sizes of tiles, whole or only the first elements, stable") {
  // Tiles have 2048 elements; shorter rows share one.
  constexpr size_t kCols[] = {1, 7, 8, 9, 1023, 1024, 1025, 2047, 2048, 2049, 4096, 4097, 6145, 16385, 20000};
  constexpr int kCount = sizeof kCols / sizeof *kCols;
  for (int round = 0; round < rounds(64 * kCount); round++) {
    const size_t cols = kCols[round % kCount], rows = round % 2 ? 3 : 1;
    const size_t counts[] = {1, std::max<size_t>(1, cols / 3), std::min<size_t>(2049, cols), cols};
    Twin a(kTypes[(round / kCount + round) % 8], rows * cols);
    expect_sorted(a, rows, counts[below(4)], below(2));
  }
  for (int round = 0; round < rounds(200); round++) {
    const size_t rows = 1 + below(300), cols = 1 + below(60);
    Twin a(kTypes[below(8)], rows * cols);
    expect_sorted(a, rows, 1 + below(cols), below(2));
  }
}

TEST("sort takes NaN as the largest, -0 as 0, and orders the extremes of each type") {
  for (const DType dtype : kTypes) {
    Twin a(dtype, 5000);
    const bool is_float = dtype == DType::Float32 || dtype == DType::Float64 || is_half(dtype);
    const double least = dtype == DType::Int32 ? INT32_MIN : dtype == DType::Int64 ? -0x1p63 : 0;
    const double largest = dtype == DType::Int32 ? INT32_MAX : dtype == DType::Int64 ? 0x1.fffffffffffffp62 : 255;
    for (size_t i = 0; i < a.count(); i += 1 + below(40)) {
      const double floats[] = {NAN, -NAN, INFINITY, -INFINITY, 0.0, -0.0, 1e-40, -1e-40, 60000, -60000};
      const double integers[] = {least, largest, 0, 1};
      set(dtype, a.host(), i, is_float ? floats[below(10)] : integers[below(4)]);
    }
    a.upload();
    for (const size_t count : {size_t{40}, a.count()}) {
      expect_sorted(a, 1, count, false);
      expect_sorted(a, 1, count, true);
      expect_sorted(a, 100, std::min<size_t>(count, 50), true);
    }
  }
}

TEST("sums by index, of runs inside pieces and over several, one index for a slice or one for each element") {
  // Threads sum pieces of 16 entries or more; 8 indices or fewer are added in order.
  constexpr size_t kCounts[] = {1, 8, 9, 15, 16, 17, 31, 32, 33, 100, 255, 300, 2048, 2049, 5000};
  constexpr int kCount = sizeof kCounts / sizeof *kCounts;
  for (int round = 0; round < rounds(12 * kCount); round++) {
    const size_t count = kCounts[round % kCount];
    const bool per_element = round % 2, is_wide = below(2);
    const LookupSizes sizes{1 + below(3), count, 1 + below(is_wide ? 500 : 9), 1 + below(is_wide ? 3 : 9), per_element};
    expect_scatter(static_cast<ScatterOp>(below(5)), kTypes[(round / kCount + round) % 8], sizes,
                   0.5 * static_cast<double>(below(3)));
  }
  // With so many columns, one piece has all entries of a column.
  for (const bool per_element : {false, true})
    expect_scatter(ScatterOp::Add, DType::Float32, {1 << 17, 20, 3, 1, per_element}, 0.3);
}

TEST("an index outside is reported, and the others are added") {
  gpu::Device& device = gpu::current_device();
  for (const size_t count : {5, 100}) {
    for (const int64_t bad : {int64_t{-1}, int64_t{4}, std::numeric_limits<int64_t>::max()}) {
      const LookupSizes x{1, count, 4, 2, false};
      Twin from(DType::Float32, count * 2), into(DType::Float32, 8), index(DType::Int64, count);
      for (size_t i = 0; i < count; i++) index.host<int64_t>()[i] = static_cast<int64_t>(below(4));
      index.host<int64_t>()[count / 2] = bad;
      index.upload();
      gpu::kernels().scatter(
          {x, DType::Float32, into.device(), from.device(), index.device<int64_t>(), ScatterOp::Add});
      bool is_reported = false;
      try {
        device.synchronize();
      } catch (const std::out_of_range&) {
        is_reported = true;
      }
      CHECK(is_reported);
      // The CPU adds a zero instead.
      index.host<int64_t>()[count / 2] = 0;
      from.host<float>()[count / 2 * 2] = from.host<float>()[count / 2 * 2 + 1] = 0;
      cpu.scatter({x, DType::Float32, into.host(), from.host(), index.host<int64_t>(), ScatterOp::Add});
      into.compare(1e-6, "scatter");
    }
  }
}

TEST("a sum by index has the same bits every time, and close to those of the CPU") {
  const LookupSizes x{1, 3000, 7, 5, false};
  Twin from(DType::Float32, x.count * x.inner), index(DType::Int64, x.count);
  for (size_t i = 0; i < from.count(); i++) from.host<float>()[i] = std::sin(static_cast<float>(i));
  for (size_t i = 0; i < x.count; i++) index.host<int64_t>()[i] = static_cast<int64_t>(below(7));
  from.upload();
  index.upload();
  std::vector<float> results[2];
  for (std::vector<float>& result : results) {
    Twin into(DType::Float32, x.size * x.inner);
    std::fill_n(into.host<float>(), into.count(), 0.0f);
    into.upload();
    gpu::kernels().scatter({x, DType::Float32, into.device(), from.device(), index.device<int64_t>(), ScatterOp::Add});
    result.resize(into.count());
    gpu::current_device().download(result.data(), into.device(), into.count() * sizeof(float));
    cpu.scatter({x, DType::Float32, into.host(), from.host(), index.host<int64_t>(), ScatterOp::Add});
    into.compare(1e-5, "scatter");
  }
  CHECK(results[0] == results[1]);
}

int main() { return test::run_on_device(); }
