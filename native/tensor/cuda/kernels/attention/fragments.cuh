// Products of 16-bit attention on tensor cores. A block of four warps has kOwnRows rows of its own, 16 for each warp,
// and visits others in tiles of two matrices: keys and values, or queries and gradients of results. With widths up to
// 128, own rows stay in registers as left factors, and the next tiles arrive while the present ones are multiplied.
// Wider rows are multiplied in slices of their columns, and a block writes 128 columns of a result.
#pragma once

#include "tensor/cuda/kernels/attention/heads.cuh"
#include "tensor/cuda/kernels/shared/mma.cuh"

namespace ringwise::tensor::cuda {

constexpr int kOwnRows = kAttentionRows, kBlock = kAttentionThreads;
static_assert(kOwnRows / 16 == kBlock / kWarp);

/// The sizes of a kernel: columns of a tile, rows of a visited tile, and whether rows may have more columns than that.
template <int kCols_, int kVisited_, bool is_sliced_ = false>
struct Shape {
  static constexpr int kCols = kCols_, kVisited = kVisited_, kStep = tile_step(kCols);
  static constexpr bool is_sliced = is_sliced_;
  static constexpr int kSlice = 64, kSliceStep = tile_step(kSlice);
};

/// The shared memory of a block: two pairs of visited tiles; if rows are sliced, one pair and two pairs of slices.
template <class S, class E>
class Memory {
 public:
  __device__ E* visited(int stage, int which) { return all_ + (stage * 2 + which) * kTile; }
  __device__ E* own_slice(int stage) { return all_ + 2 * kTile + stage * kSlices; }
  __device__ E* visited_slice(int stage) { return own_slice(stage) + kOwnRows * S::kSliceStep; }
  /// Returns a tile of kOwnRows rows in the place of the others.
  __device__ E* own() { return all_; }

 private:
  static constexpr int kTile = S::kVisited * S::kStep, kSlices = (kOwnRows + S::kVisited) * S::kSliceStep,
                       kSize = 2 * kTile + 2 * (S::is_sliced ? kSlices : kTile);
  static_assert(kSize >= kOwnRows * S::kStep && kSize * sizeof(E) <= 48 << 10);
  alignas(16) E all_[kSize];
};

/// The rows of a block, from row `begin` on.
template <class S, class E>
struct OwnRows {
  Rows<const E> rows;
  int64_t begin;
  bool use_packs;
  Left at[S::is_sliced ? 1 : S::kCols / 16];  // unused if rows are sliced

  /// Loads the rows, by way of memory that no thread uses. Ends at a barrier.
  __device__ OwnRows(Memory<S, E>& memory, const Rows<const E>& rows, int64_t begin, bool use_packs)
      : rows(rows), begin(begin), use_packs(use_packs) {
    if constexpr (!S::is_sliced) {
      start_tile<kOwnRows, S::kCols, kBlock>(memory.own(), rows, begin, 0, use_packs);
      await_copies();
      __syncthreads();
#pragma unroll
      for (int i = 0; i < S::kCols / 16; i++)
        at[i] = load_left<false>(memory.own() + first_row() * S::kStep + i * 16, S::kStep);
      __syncthreads();
    }
  }

  /// Returns the first of the 16 rows that a warp has, counted from `begin`.
  __device__ static int first_row() { return static_cast<int>(threadIdx.x) / kWarp * 16; }
};

/// Results of a warp: 16 rows of a tile.
template <class S>
using Result = Sums[S::kCols / 8];
/// One number for each own and each visited row.
template <class S>
using Weights = Sums[S::kVisited / 8];

/// Adds the products of a left factor and 16 columns of rows that are kRows rows of a tile.
template <int kRows, class E>
__device__ inline void add_row_products(Sums (&products)[kRows / 8], const Left& left, const E* tile, int step) {
#pragma unroll
  for (int j = 0; j < kRows / 16; j++)
    add_products<E>(&products[2 * j], left, load_rights<false>(tile + j * 16 * step, step));
}

/// Computes the products of own rows and visited ones. These are in `tile`, unless rows are sliced: then they are rows
/// [row, …) of `visited`.
template <class S, class E>
__device__ inline void multiply(Weights<S>& products, const OwnRows<S, E>& own, const E* tile, Memory<S, E>& memory,
                                const Rows<const E>& visited, int64_t row) {
#pragma unroll
  for (Sums& sums : products) sums = {};
  if constexpr (!S::is_sliced) {
#pragma unroll
    for (int i = 0; i < S::kCols / 16; i++) add_row_products<S::kVisited>(products, own.at[i], tile + i * 16, S::kStep);
  } else {
    const auto start = [&](int stage, int64_t col) {
      start_tile<kOwnRows, S::kSlice, kBlock>(memory.own_slice(stage), own.rows, own.begin, col, own.use_packs);
      start_tile<S::kVisited, S::kSlice, kBlock>(memory.visited_slice(stage), visited, row, col, own.use_packs);
    };
    __syncthreads();  // no thread reads the slices of the last product any more
    if (visited.width > 0) start(0, 0);
    int stage = 0;
    for (int64_t col = 0; col < visited.width; col += S::kSlice, stage ^= 1) {
      await_copies();
      __syncthreads();
      if (col + S::kSlice < visited.width) start(stage ^ 1, col + S::kSlice);
      const E* const left = memory.own_slice(stage) + own.first_row() * S::kSliceStep;
#pragma unroll
      for (int i = 0; i < S::kSlice / 16; i++)
        add_row_products<S::kVisited>(products, load_left<false>(left + i * 16, S::kSliceStep),
                                      memory.visited_slice(stage) + i * 16, S::kSliceStep);
    }
  }
}

/// Adds the visited rows in `tile`, times weights that are rounded to 16 bits.
template <class S, class E>
__device__ inline void add_weighted(Result<S>& result, const Weights<S>& weights, const E* tile) {
#pragma unroll
  for (int i = 0; i < S::kVisited / 16; i++) {
    const Left left = left_of<E>(weights[2 * i], weights[2 * i + 1]);
#pragma unroll
    for (int j = 0; j < S::kCols / 16; j++)
      add_products<E>(&result[2 * j], left, load_rights<true>(tile + i * 16 * S::kStep + j * 16, S::kStep));
  }
}

/// Calls body(row, tile of `first`, tile of `second`) for rows row … row + kVisited - 1 of [begin, end). If rows are
/// sliced, the tiles have columns [col, col + kCols); they are there after a call of multiply(), that of `first` only
/// if `needs_first`.
template <class S, bool needs_first, class E, class Body>
__device__ inline void visit(Memory<S, E>& memory, const Rows<const E>& first, const Rows<const E>& second,
                             int64_t begin, int64_t end, int64_t col, bool use_packs, Body body) {
  const auto start = [&](int stage, int64_t row) {
    if constexpr (needs_first || !S::is_sliced)
      start_tile<S::kVisited, S::kCols, kBlock>(memory.visited(stage, 0), first, row, col, use_packs);
    start_tile<S::kVisited, S::kCols, kBlock>(memory.visited(stage, 1), second, row, col, use_packs);
  };
  if constexpr (S::is_sliced) {
    for (int64_t row = begin; row < end; row += S::kVisited) {
      __syncthreads();  // no thread reads the last tiles any more
      start(0, row);
      body(row, memory.visited(0, 0), memory.visited(0, 1));
    }
  } else {
    if (begin < end) start(0, begin);
    int stage = 0;
    for (int64_t row = begin; row < end; row += S::kVisited, stage ^= 1) {
      await_copies();
      __syncthreads();  // all threads have these tiles, and none reads the other ones any more
      if (row + S::kVisited < end) start(stage ^ 1, row + S::kVisited);
      body(row, memory.visited(stage, 0), memory.visited(stage, 1));
    }
  }
}

/// Writes results, times a factor for each of the thread's two rows, to rows [begin, …) and columns [col, …) of `to`.
/// They pass through shared memory, so that a thread writes 16 bytes at once.
template <class S, class E>
__device__ inline void write_result(Memory<S, E>& memory, const Rows<E>& to, const Result<S>& result,
                                    const float (&factor)[2], int64_t begin, int64_t col, bool use_packs) {
  __syncthreads();  // no thread reads tiles any more
  E* const own = memory.own() + (OwnRows<S, E>::first_row() + row_of_lane()) * S::kStep + col_of_lane();
#pragma unroll
  for (int j = 0; j < S::kCols / 8; j++) {
#pragma unroll
    for (int r = 0; r < 2; r++) {
      *reinterpret_cast<uint32_t*>(own + r * 8 * S::kStep + j * 8) =
          rounded_pair<E>(result[j].at[r * 2] * factor[r], result[j].at[r * 2 + 1] * factor[r]);
    }
  }
  __syncthreads();
  constexpr int kPacks = S::kCols / 8;
#pragma unroll 4
  for (int e = static_cast<int>(threadIdx.x); e < kOwnRows * kPacks; e += kBlock) {
    const int r = e / kPacks, c = e % kPacks * 8;
    const int64_t left = begin + r < to.count ? to.width - col - c : 0;
    if (left <= 0) continue;
    store_up_to(to.data + (begin + r) * to.step + col + c, load_elements<E, 8>(memory.own() + r * S::kStep + c),
                static_cast<int>(left < 8 ? left : 8), use_packs && left >= 8);
  }
}

/// Returns, to the four threads that have a row of sums, the combination of their values.
template <class Combine>
__device__ inline float over_row(float value, Combine combine) {
  value = combine(value, __shfl_xor_sync(0xffffffffu, value, 1));
  return combine(value, __shfl_xor_sync(0xffffffffu, value, 2));
}

}  // namespace ringwise::tensor::cuda
