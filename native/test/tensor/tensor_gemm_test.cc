// Tests the matrix product at every instruction set. The operands are whole numbers, so that the right answer is exact.
#include "test/tensor/tensor_oracle.h"
#include "test/tensor/tensor_walk.h"

using namespace ringwise;
using test::all_levels;
using test::Guarded;
using test::whole_numbers;

namespace {

struct Shape {
  size_t m, n, k;
};

std::vector<float> transposed(const std::vector<float>& a, size_t rows, size_t cols) {
  std::vector<float> result(a.size());
  for (size_t r = 0; r < rows; r++) {
    for (size_t c = 0; c < cols; c++) result[c * rows + r] = a[r * cols + c];
  }
  return result;
}

/// Returns the matrix with `gap` NaN elements between its rows, which no kernel may read.
std::vector<float> spread(const std::vector<float>& a, size_t rows, size_t cols, size_t gap) {
  std::vector<float> result(a.empty() ? 0 : (rows - 1) * (cols + gap) + cols, NAN);
  for (size_t r = 0; r < rows; r++) {
    for (size_t c = 0; c < cols; c++) result[r * (cols + gap) + c] = a[r * cols + c];
  }
  return result;
}

tensor::MatmulSizes sizes(Shape s, bool trans_a = false, bool trans_b = false, bool accumulate = false,
                          size_t gap = 0) {
  return {s.m, s.n, s.k, (trans_a ? s.m : s.k) + gap, (trans_b ? s.k : s.n) + gap, trans_a, trans_b, accumulate};
}

/// Returns the number of wrong elements over all transposes, with and without accumulation.
size_t wrong(const tensor::Kernels& kernels, Shape s, size_t gap = 0) {
  const auto a = whole_numbers(s.m * s.k, 1), b = whole_numbers(s.k * s.n, 2), start = whole_numbers(s.m * s.n, 3);
  const Guarded operands_a[] = {Guarded(spread(a, s.m, s.k, gap)),
                                Guarded(spread(transposed(a, s.m, s.k), s.k, s.m, gap))};
  const Guarded operands_b[] = {Guarded(spread(b, s.k, s.n, gap)),
                                Guarded(spread(transposed(b, s.k, s.n), s.n, s.k, gap))};
  std::vector<float> product(s.m * s.n);
  for (size_t i = 0; i < s.m; i++) {
    for (size_t p = 0; p < s.k; p++) {
      for (size_t j = 0; j < s.n; j++) product[i * s.n + j] += a[i * s.k + p] * b[p * s.n + j];
    }
  }
  size_t count = 0;
  for (int flags = 0; flags < 8; flags++) {
    const bool trans_a = flags & 1, trans_b = flags & 2, accumulate = flags & 4;
    // Without accumulation C starts as NaN, which shows up in the result if a kernel reads it.
    const Guarded c(accumulate ? start : std::vector<float>(s.m * s.n, NAN));
    kernels.matmul(test::product_of(c.data(), operands_a[trans_a].data(), operands_b[trans_b].data(),
                                    sizes(s, trans_a, trans_b, accumulate, gap)));
    for (size_t i = 0; i < s.m * s.n; i++) count += !(c.data()[i] == product[i] + (accumulate ? start[i] : 0));
  }
  return count;
}

}  // namespace

TEST("matmul is exact for all small sizes, around every tile edge") {
  for (const auto* kernels : all_levels()) {
    for (const size_t m : {0, 1, 2, 5, 6, 7, 12, 13, 25}) {
      for (const size_t n : {0, 1, 4, 7, 15, 16, 17, 31, 33, 65}) {
        for (const size_t k : {0, 1, 3, 16, 17, 40}) {
          const size_t count = wrong(*kernels, {m, n, k});
          if (count != 0)
            test::fail(kernels->name, __LINE__,
                       "m " + std::to_string(m) + ", n " + std::to_string(n) + ", k " + std::to_string(k) + ": " +
                           std::to_string(count) + " wrong elements");
        }
      }
    }
  }
}

TEST("matmul is exact where k, rows and columns are cut into blocks") {
  // A block has 400 steps of k and, depending on the instruction set, 64 to 192 rows and 512 to 2048 columns. A is
  // packed if it is transposed, if there are more than 1024 columns, or if there are more than 128 and its rows lie a
  // multiple of 4 KiB apart; B is packed if it is transposed or if there are more than 64 rows. If B is transposed and
  // there are at most 128 rows, the kernel usually computes the transposed product.
  const Shape shapes[] = {{7, 33, 401},  {3, 40, 1201},  {200, 65, 33},  {129, 300, 70},  {33, 2100, 9},
                          {300, 530, 5}, {128, 260, 45}, {130, 20, 410}, {150, 140, 1024}};
  for (const auto* kernels : all_levels()) {
    for (const Shape& s : shapes) CHECK_EQ(wrong(*kernels, s), 0u);
  }
}

TEST("matmul is exact where the rows of its operands lie apart, and reads nothing between them") {
  const Shape shapes[] = {{1, 17, 5}, {3, 40, 33}, {13, 31, 17}, {33, 65, 40}, {129, 140, 9}, {140, 20, 410}};
  for (const auto* kernels : all_levels()) {
    for (const Shape& s : shapes) CHECK_EQ(wrong(*kernels, s, 3), 0u);
  }
}

TEST("matmul gives the same bits every time, whatever ran before") {
  const size_t m = 37, n = 83, k = 450;
  const auto a = test::noise(m * k, 1), b = test::noise(k * n, 2);
  for (const auto* kernels : all_levels()) {
    std::vector<float> first(m * n), again(m * n);
    kernels->matmul(test::product_of(first.data(), a.data(), b.data(), sizes({m, n, k})));
    CHECK_EQ(wrong(*kernels, {13, 700, 20}), 0u);
    kernels->matmul(test::product_of(again.data(), a.data(), b.data(), sizes({m, n, k})));
    CHECK(first == again);
  }
}

int main() { return test::run_all(); }
