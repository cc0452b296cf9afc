// Tiles of matrices with 16-bit elements, on their way to shared memory.
#pragma once

#include "tensor/cuda/kernels/shared/element.cuh"

namespace ringwise::tensor::cuda {

/// `count` rows of `width` elements that lie `step` elements apart.
template <class E>
struct Rows {
  E* data;
  int64_t step, count, width;
};

/// Starts a copy of `bytes` ≤ 16 bytes to shared memory, and of zeros behind them. Both addresses are multiples of 16.
__device__ inline void start_copy(void* to, const void* from, int bytes) {
#ifdef __CUDACC__
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
               :
               : "r"(static_cast<uint32_t>(__cvta_generic_to_shared(to))), "l"(__cvta_generic_to_global(from)),
                 "r"(bytes)
               : "memory");
#else
  software_gpu::copy_later(to, from, static_cast<size_t>(bytes));
#endif
}
/// Waits for all copies that this thread has started. After a barrier, other threads see them too.
__device__ inline void await_copies() {
#ifdef __CUDACC__
  asm volatile("cp.async.wait_all;" : : : "memory");
#else
  software_gpu::await_copies();
#endif
}

/// The distance of rows of a tile. Eight rows at one column are in different banks, and begin at multiples of 16 bytes.
constexpr int tile_step(int cols) { return cols + 8; }

/// Starts to load rows [row, row + kRows) and columns [col, col + kCols) to a tile, by kBlock threads; zeros outside of
/// the matrix. They are there after await_copies() and a barrier. `use_packs` tells that each row begins at a multiple
/// of 16 bytes, and `col` has to be one of 8.
template <int kRows, int kCols, int kBlock, class E>
__device__ inline void start_tile(E* tile, const Rows<const E>& from, int64_t row, int64_t col, bool use_packs) {
  constexpr int kPacks = kCols / 8, kTurns = kRows * kPacks / kBlock;
  static_assert(kRows * kPacks % kBlock == 0);
  const auto for_pack = [&](int i, auto body) {
    const int e = i * kBlock + static_cast<int>(threadIdx.x), r = e / kPacks, c = e % kPacks * 8;
    const int64_t left = row + r < from.count ? from.width - col - c : 0;
    const int n = static_cast<int>(left < 0 ? 0 : left < 8 ? left : 8);
    body(tile + r * tile_step(kCols) + c, n > 0 ? from.data + (row + r) * from.step + col + c : from.data, n);
  };
  if (use_packs) {
#pragma unroll
    for (int i = 0; i < kTurns; i++)
      for_pack(i, [](E* to, const E* at, int n) { start_copy(to, at, n * static_cast<int>(sizeof(E))); });
    return;
  }
  // Not unrolled, because the elements of all turns would take too many registers.
#pragma unroll 1
  for (int i = 0; i < kTurns; i++) {
    for_pack(i, [](E* to, const E* at, int n) {
      struct alignas(16) Pack {
        E at[8];
      } pack;
#pragma unroll
      for (int k = 0; k < 8; k++) pack.at[k] = k < n ? at[k] : E{};
      *reinterpret_cast<Pack*>(to) = pack;
    });
  }
}

}  // namespace ringwise::tensor::cuda
