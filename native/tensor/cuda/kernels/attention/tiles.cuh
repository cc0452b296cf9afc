// Tiles of attention. A block of 256 threads works on tiles of kTile × kTile, of which each thread has kOwn × kOwn
// neighbouring elements: scores of some rows against others, and sums of rows weighted by scores. Factors pass through
// shared memory in slices of kDeep columns or rows, so heads may have any width. This file does not distinguish queries
// from keys.
#pragma once

#include "tensor/cuda/kernels/attention/heads.cuh"

namespace ringwise::tensor::cuda {

constexpr int kDeep = 16, kAcross = 16;  // kAcross: threads along each side of a tile
static_assert(kAcross * kAcross == kThreads);

/// The shared memory of a block.
template <class T>
struct Tiles {
  static constexpr int kOwn = sizeof(T) == 8 ? 2 : 4;
  static constexpr int kTile = kOwn * kAcross;
  static constexpr int kStep = kTile + 4;  // keeps rows aligned, and spreads columns over banks
  alignas(16) T left[kDeep][kStep];
  alignas(16) T right[kDeep][kStep];
  alignas(16) T weights[kTile][kStep];
};

/// The part of a tile that one thread holds.
template <class T>
struct Own {
  static constexpr int kOwn = Tiles<T>::kOwn;
  T at[kOwn][kOwn];

  template <class Body>
  __device__ void each(Body body) {
#pragma unroll
    for (int r = 0; r < kOwn; r++) {
#pragma unroll
      for (int s = 0; s < kOwn; s++) body(r, s, at[r][s]);
    }
  }
};

/// Return the thread's first row and column in a tile.
template <class T>
__device__ inline int own_row() {
  return static_cast<int>(threadIdx.x) / kAcross * Tiles<T>::kOwn;
}
template <class T>
__device__ inline int own_col() {
  return static_cast<int>(threadIdx.x) % kAcross * Tiles<T>::kOwn;
}

/// Returns up to four elements of a row, and 0 outside of it.
template <class E, class T>
__device__ inline void fetch(T* four, const Rows<E>& from, int64_t row, int64_t col, bool use_packs) {
  const int64_t left = from.width - col;
  for (int k = 0; k < 4; k++) four[k] = T(0);
  if (row < from.count && left > 0)
    read_four(four, from.data + row * from.step + col, static_cast<int>(left < 4 ? left : 4), use_packs);
}

/// Loads columns [col, col + kDeep) of rows [row, row + kTile), transposed: to[column][row].
template <class E, class T>
__device__ inline void fetch_turned(T (*to)[Tiles<T>::kStep], const Rows<E>& from, int64_t row, int64_t col,
                                    bool use_packs) {
  constexpr int kPacks = kDeep / 4;
  for (int e = static_cast<int>(threadIdx.x); e < Tiles<T>::kTile * kPacks; e += kThreads) {
    const int r = e / kPacks, c = e % kPacks * 4;
    T four[4];
    fetch(four, from, row + r, col + c, use_packs);
#pragma unroll
    for (int k = 0; k < 4; k++) to[c + k][r] = four[k];
  }
}

/// Loads columns [col, col + kTile) of rows [row, row + kDeep): to[row][column].
template <class E, class T>
__device__ inline void fetch_straight(T (*to)[Tiles<T>::kStep], const Rows<E>& from, int64_t row, int64_t col,
                                      bool use_packs) {
  constexpr int kPacks = Tiles<T>::kTile / 4;
  for (int e = static_cast<int>(threadIdx.x); e < kDeep * kPacks; e += kThreads) {
    const int r = e / kPacks, c = e % kPacks * 4;
    fetch(&to[r][c], from, row + r, col + c, use_packs);
  }
}

/// kOwn values, which are read at once.
template <class T>
struct alignas(16) Few {
  T at[Tiles<T>::kOwn];
};

/// Adds the outer product: total += left ⊗ right.
template <class T>
__device__ inline void add_outer(Own<T>& total, const T* left, const T* right) {
  const Few<T> l = *reinterpret_cast<const Few<T>*>(left), r = *reinterpret_cast<const Few<T>*>(right);
  total.each([&](int i, int j, T& to) { to += l.at[i] * r.at[j]; });
}

/// Computes total = rows [row, row + kTile) of `a` times rows [col, col + kTile) of `b`, transposed. Ends at a barrier.
template <class E, class T>
__device__ inline void multiply_rows(Own<T>& total, Tiles<T>& tiles, const Rows<E>& a, int64_t row, const Rows<E>& b,
                                     int64_t col, bool use_packs) {
  total = {};
  for (int64_t d = 0; d < a.width; d += kDeep) {
    fetch_turned(tiles.left, a, row, d, use_packs);
    fetch_turned(tiles.right, b, col, d, use_packs);
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kDeep; i++) add_outer(total, &tiles.left[i][own_row<T>()], &tiles.right[i][own_col<T>()]);
    __syncthreads();
  }
}

/// Stores the weights, transposed, for weighted_sum, whose first barrier makes them visible to the block.
template <class T>
__device__ inline void set_weights(Tiles<T>& tiles, Own<T>& weights) {
  weights.each([&](int r, int s, T& weight) { tiles.weights[own_col<T>() + s][own_row<T>() + r] = weight; });
}

/// Computes total[row, c] += Σ weights[row, j] · from[first + j, col + c]. Ends at a barrier.
template <class E, class T>
__device__ inline void weighted_sum(Own<T>& total, Tiles<T>& tiles, const Rows<E>& from, int64_t first, int64_t col,
                                    bool use_packs) {
  for (int j = 0; j < Tiles<T>::kTile && first + j < from.count; j += kDeep) {
    fetch_straight(tiles.right, from, first + j, col, use_packs);
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kDeep; i++)
      add_outer(total, &tiles.weights[j + i][own_row<T>()], &tiles.right[i][own_col<T>()]);
    __syncthreads();
  }
}

/// Writes the thread's part of a tile to rows [row, …) and columns [col, …) of `to`.
template <class E, class T>
__device__ inline void write_own(const Rows<E>& to, Own<T>& values, int64_t row, int64_t col, bool use_packs) {
  constexpr int kOwn = Tiles<T>::kOwn;
  const int64_t c = col + own_col<T>(), left = to.width - c;
#pragma unroll
  for (int r = 0; r < kOwn; r++) {
    const int64_t at = row + own_row<T>() + r;
    T four[4] = {};
    for (int s = 0; s < kOwn; s++) four[s] = values.at[r][s];
    if (at < to.count && left > 0)
      write_four(to.data + at * to.step + c, four, static_cast<int>(left < kOwn ? left : kOwn), use_packs);
  }
}

/// Returns, to all threads with the same rows of a tile, the combination of their values.
template <class T, class Combine>
__device__ inline T over_columns(T value, Combine combine) {
#pragma unroll
  for (int mask = kAcross / 2; mask > 0; mask /= 2) value = combine(value, __shfl_xor_sync(0xffffffffu, value, mask));
  return value;
}

}  // namespace ringwise::tensor::cuda
