// Tests the products of kernels/shared/mma.cuh as the software device computes them: fragments have the layout that the
// PTX manual gives for mma.m16n8k16, and loads from shared memory give that layout. Also tests that tile.cuh loads
// tiles.
#include <random>

// Included first, because it defines threadIdx and the other CUDA keywords that the headers below use.
#include "test/software_gpu/blocks.cc"

#include "tensor/cuda/kernels/shared/mma.cuh"
#include "tensor/cuda/kernels/shared/tile.cuh"
#include "test/check.h"

using namespace ringwise;
using namespace ringwise::tensor::cuda;
using software_gpu::Body, software_gpu::run_grid;

namespace {

constexpr int kStep = 24;  // elements from a row to the next; rows have 16 columns, and the rest is padding
std::mt19937 random_bits(5);

/// Matrices with small integers, so that products are exact.
template <class E>
struct Case {
  E a[16 * kStep], a_transposed[16 * kStep], b[16 * kStep],
      b_transposed[16 * kStep];  // b is 16 × 16, two right factors
  float before[16][16], after[16][16];

  Case() {
    const auto number = [] { return static_cast<float>(random_bits() % 33) - 16; };
    for (int i = 0; i < 16; i++) {
      for (int j = 0; j < 16; j++) {
        a[i * kStep + j] = a_transposed[j * kStep + i] = write_as<E>(number());
        b[i * kStep + j] = b_transposed[j * kStep + i] = write_as<E>(number());
        before[i][j] = number();
      }
    }
  }

  void check() const {
    for (int i = 0; i < 16; i++) {
      for (int j = 0; j < 16; j++) {
        float sum = before[i][j];
        for (int k = 0; k < 16; k++) sum += float_of(a[i * kStep + k]) * float_of(b[k * kStep + j]);
        CHECK_EQ(after[i][j], sum);
      }
    }
  }
};

/// Calls use(element of the sums, its row, its column) for the thread's elements, by the formulas of the manual.
template <class Use>
void for_each_sum(Use use) {
  const int lane = static_cast<int>(threadIdx.x) % 32, group = lane >> 2, in_group = lane % 4;
  for (int i = 0; i < 4; i++) use(i, i < 2 ? group : group + 8, in_group * 2 + (i & 1));
}

/// Multiplies with fragments that are set element by element, by the formulas of the manual.
template <class E>
void multiply_by_manual(const void* arguments) {
  Case<E>& x = **static_cast<Case<E>* const*>(arguments);
  const int lane = static_cast<int>(threadIdx.x), group = lane >> 2, in_group = lane % 4;
  Left left{};
  for (int i = 0; i < 8; i++) {
    const int row = i < 2 || (4 <= i && i < 6) ? group : group + 8;
    const int col = in_group * 2 + (i & 1) + (i >= 4 ? 8 : 0);
    left.at[i / 2] |= static_cast<uint32_t>(x.a[row * kStep + col].bits) << (i % 2 * 16);
  }
  for (int part = 0; part < 2; part++) {
    uint32_t right[2] = {};
    for (int i = 0; i < 4; i++) {
      const int row = in_group * 2 + (i & 1) + (i >= 2 ? 8 : 0), col = group + part * 8;
      right[i / 2] |= static_cast<uint32_t>(x.b[row * kStep + col].bits) << (i % 2 * 16);
    }
    Sums sums;
    for_each_sum([&](int i, int row, int col) { sums.at[i] = x.before[row][col + part * 8]; });
    add_product<E>(sums, left, right);
    for_each_sum([&](int i, int row, int col) { x.after[row][col + part * 8] = sums.at[i]; });
  }
}

/// Multiplies with fragments that are loaded from memory. load_rights() reads each column of the factor from a row of
/// memory, so without `is_right_transposed` it takes the transposed matrix.
template <class E, bool is_left_transposed, bool is_right_transposed>
void multiply_loaded(const void* arguments) {
  Case<E>& x = **static_cast<Case<E>* const*>(arguments);
  const Left left = load_left<is_left_transposed>(is_left_transposed ? x.a_transposed : x.a, kStep);
  const Rights rights = load_rights<is_right_transposed>(is_right_transposed ? x.b : x.b_transposed, kStep);
  Sums sums[2];
  for (int part = 0; part < 2; part++)
    for_each_sum([&](int i, int row, int col) { sums[part].at[i] = x.before[row][col + part * 8]; });
  add_products<E>(sums, left, rights);
  for (int part = 0; part < 2; part++)
    for_each_sum([&](int i, int row, int col) { x.after[row][col + part * 8] = sums[part].at[i]; });
}

/// Multiplies sums, as a left factor, by the identity.
template <class E>
void multiply_sums(const void* arguments) {
  Case<E>& x = **static_cast<Case<E>* const*>(arguments);
  Sums sums[2], result[2] = {};
  for (int part = 0; part < 2; part++)
    for_each_sum([&](int i, int row, int col) { sums[part].at[i] = x.before[row][col + part * 8]; });
  E identity[16 * kStep] = {};
  for (int i = 0; i < 16; i++) identity[i * kStep + i] = write_as<E>(1.0f);
  add_products<E>(result, left_of<E>(sums[0], sums[1]), load_rights<true>(identity, kStep));
  for (int part = 0; part < 2; part++)
    for_each_sum([&](int i, int row, int col) { x.after[row][col + part * 8] = result[part].at[i]; });
}

template <class E>
void check_products() {
  for (const Body body : {&multiply_by_manual<E>, &multiply_loaded<E, false, false>, &multiply_loaded<E, false, true>,
                          &multiply_loaded<E, true, false>, &multiply_loaded<E, true, true>}) {
    Case<E> x;
    Case<E>* const at = &x;
    CHECK(run_grid(body, &at, {1, 1, 1}, {32, 1, 1}, true));
    x.check();
  }
  Case<E> x;
  Case<E>* const at = &x;
  CHECK(run_grid(&multiply_sums<E>, &at, {1, 1, 1}, {32, 1, 1}, true));
  CHECK(std::memcmp(x.before, x.after, sizeof x.before) == 0);
}

/// A matrix of 5 × 12 elements whose rows lie 16 elements apart, and a tile of 16 × 16 that is loaded from row 2,
/// column 0 of it. Elements of the tile outside of the matrix must become zero.
struct TileCase {
  Half from[5 * 16], tile[16 * tile_step(16)];
  bool use_packs;
};
void load_tile(const void* arguments) {
  TileCase& x = **static_cast<TileCase* const*>(arguments);
  start_tile<16, 16, 32>(x.tile, Rows<const Half>{x.from, 16, 5, 12}, 2, 0, x.use_packs);
  // Thread 0 loads element 0. On the software device a copy runs in await_copies(), so the tile still has its fill
  // value.
  if (x.use_packs && threadIdx.x == 0) CHECK_EQ(x.tile[0].bits, 0xffff);
  await_copies();
}

}  // namespace

TEST("a product of fragments is that of the matrices, for both 16-bit types and all layouts in memory") {
  for (int round = 0; round < 5; round++) {
    check_products<Half>();
    check_products<BFloat>();
  }
}

TEST("a tile has zeros outside of its matrix, and is loaded when its copies are awaited") {
  for (const bool use_packs : {false, true}) {
    alignas(16) TileCase x;
    for (int i = 0; i < 5 * 16; i++) x.from[i] = to_half(static_cast<float>(i + 1));
    std::memset(x.tile, 0xff, sizeof x.tile);
    x.use_packs = use_packs;
    TileCase* const at = &x;
    CHECK(run_grid(&load_tile, &at, {1, 1, 1}, {32, 1, 1}, true));
    for (int row = 0; row < 16; row++) {
      for (int col = 0; col < 16; col++) {
        const float want = row < 3 && col < 12 ? static_cast<float>((row + 2) * 16 + col + 1) : 0;
        CHECK_EQ(to_float(x.tile[row * tile_step(16) + col]), want);
      }
    }
  }
}

int main() { return ringwise::test::run_all(); }
