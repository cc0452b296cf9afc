// Compares running sums, sorting and sums by index with those of the CPU, with sizes around those at which the kernels
// change their layout: tiles, chunks and runs.
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

}  // namespace

TEST("cumsum of rows, columns and slices, around the sizes of tiles and chunks") {
  // A tile has 2048 elements. Rows longer than 8 tiles are cut into chunks on a device with two multiprocessors.
  constexpr size_t kShapes[][3] = {{1, 1, 1},      {1, 2047, 1},  {1, 2048, 1},  {1, 2049, 1},  {3, 600, 1},
                                   {700, 5, 1},    {9, 1025, 1},  {1, 16383, 1}, {1, 16384, 1}, {1, 16385, 1},
                                   {1, 40961, 1},  {2, 20000, 1}, {1, 511, 32},  {1, 513, 32},  {1, 3000, 33},
                                   {2, 4000, 2},   {3, 1500, 5},  {5, 3, 300},   {2, 1, 257},   {1, 9000, 3},
                                   {1, 100000, 1}, {0, 5, 4},     {5, 0, 4},     {5, 4, 0}};
  for (const auto& [outer, size, inner] : kShapes) {
    for (const DType dtype : kTypes) {
      expect_cumsum(dtype, outer, size, inner, false);
      expect_cumsum(dtype, outer, size, inner, true);
    }
  }
  for (int round = 0; round < 300; round++) {
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

int main() { return test::run_on_device(); }
