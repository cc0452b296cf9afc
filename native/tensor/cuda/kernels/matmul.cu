// Matrix products where cuBLASLt does not compute them. Factors pass through shared memory in slices along k. Products
// are added in the order of k.
//
// float32 and float64: tiles of 64 × 64, with 4 × 4 results per thread. 16-bit types: tiles on tensor cores
// (shared/mma.cuh), whose next slice is loaded while the present one is multiplied.
#include "tensor/cuda/kernels/shared/mma.cuh"
#include "tensor/cuda/kernels/shared/tile.cuh"

namespace ringwise::tensor::cuda {

constexpr int kTile = kMatmulTile, kWideTile = kMatmulWideTile;
constexpr int kDeep = 16, kOwn = 4;  // kOwn² results for each of the (kTile / kOwn)² = kThreads threads
static_assert((kTile / kOwn) * (kTile / kOwn) == kThreads && kTile * kDeep % kThreads == 0);

/// The tile of a block: its matrix, and its first row and column in tiles. Neighbouring blocks, which run at the same
/// time, have tiles of a few neighbouring columns and many rows, so that they read the same rows and columns of the
/// factors.
struct TilePosition {
  uint32_t matrix, down, across;
};
__device__ inline TilePosition tile_position_of(const MatmulArguments& x) {
  constexpr uint32_t kPanel = 16;  // columns of tiles
  const uint32_t tiles = x.tiles_down * x.tiles_across, matrix = blockIdx.x / tiles, i = blockIdx.x - matrix * tiles;
  const uint32_t panel = i / (kPanel * x.tiles_down), first = panel * kPanel, in_panel = i - first * x.tiles_down;
  const uint32_t width = x.tiles_across - first < kPanel ? x.tiles_across - first : kPanel;
  return {matrix, in_panel / width, first + in_panel % width};
}

/// Returns the offset of a matrix in an operand with these strides.
__device__ inline int64_t offset_of(const MatmulArguments& x, uint32_t matrix, const int64_t* strides) {
  int64_t offset = 0;
  for_each_dimension(static_cast<int64_t>(matrix), x.rank, x.shape,
                     [&](int d, int64_t index) { offset += index * strides[d]; });
  return offset;
}

/// Returns element (row, i) of a factor whose rows are the rows (or columns) of the result; 0 outside.
template <class T>
__device__ inline T factor(const T* data, int64_t row, int64_t i, int64_t rows, int64_t k, int64_t step,
                           bool is_along_k) {
  if (row >= rows || i >= k) return T(0);
  return is_along_k ? data[row * step + i] : data[i * step + row];
}

template <class T>
__device__ void matmul(const MatmulArguments& x) {
  // One column more than is used, so that threads that write a column meet different banks.
  __shared__ T a_tile[kDeep][kTile + 1], b_tile[kDeep][kTile + 1];
  const int thread = static_cast<int>(threadIdx.x);
  const int own_row = thread / (kTile / kOwn) * kOwn, own_col = thread % (kTile / kOwn) * kOwn;
  const bool a_along_k = !x.trans_a, b_along_k = x.trans_b != 0;
  const TilePosition at = tile_position_of(x);
  const int64_t top = int64_t{at.down} * kTile, left = int64_t{at.across} * kTile;
  const T* const a = static_cast<const T*>(x.a) + offset_of(x, at.matrix, x.a_stride);
  const T* const b = static_cast<const T*>(x.b) + offset_of(x, at.matrix, x.b_stride);
  T total[kOwn][kOwn] = {};
  for (int64_t begin = 0; begin < x.k; begin += kDeep) {
    for (int e = thread; e < kTile * kDeep; e += kThreads) {
      // Neighbouring threads read along the dense dimension.
      const int a_row = a_along_k ? e / kDeep : e % kTile, a_i = a_along_k ? e % kDeep : e / kTile;
      a_tile[a_i][a_row] = factor(a, top + a_row, begin + a_i, x.m, x.k, x.a_step, a_along_k);
      const int b_col = b_along_k ? e / kDeep : e % kTile, b_i = b_along_k ? e % kDeep : e / kTile;
      b_tile[b_i][b_col] = factor(b, left + b_col, begin + b_i, x.n, x.k, x.b_step, b_along_k);
    }
    __syncthreads();
    // Zeros behind the end of k are not multiplied: the other factor may be infinite.
    const int deep = static_cast<int>(x.k - begin < kDeep ? x.k - begin : kDeep);
    for (int i = 0; i < deep; i++) {
      T left_part[kOwn], right_part[kOwn];
#pragma unroll
      for (int r = 0; r < kOwn; r++) {
        left_part[r] = a_tile[i][own_row + r];
        right_part[r] = b_tile[i][own_col + r];
      }
#pragma unroll
      for (int r = 0; r < kOwn; r++) {
#pragma unroll
        for (int s = 0; s < kOwn; s++) total[r][s] += left_part[r] * right_part[s];
      }
    }
    __syncthreads();
  }
  T* const c = static_cast<T*>(x.c) + offset_of(x, at.matrix, x.c_stride);
#pragma unroll
  for (int r = 0; r < kOwn; r++) {
    const int64_t row = top + own_row + r;
#pragma unroll
    for (int s = 0; s < kOwn; s++) {
      const int64_t col = left + own_col + s;
      if (row >= x.m || col >= x.n) continue;
      T& to = c[row * x.n + col];
      to = x.accumulate ? to + total[r][s] : total[r][s];
    }
  }
}

/// Slices of both factors. A factor whose rows are dense along k has a tile [kSize][kSlice], another one
/// [kSlice][kSize], which takes less.
template <class E, int kSize>
struct Slices {
  static constexpr int kSlice = 32;
  alignas(16) E a[kSize * tile_step(kSlice)];
  alignas(16) E b[kSize * tile_step(kSlice)];
};

/// Starts to load columns [begin, begin + kSlice) of kSize rows of a factor, or the same of its transpose. Elements
/// behind the end of k are 0 in both factors, so that an infinite one adds nothing.
template <int kSize, bool is_along_k, class E>
__device__ inline void start_slice(E* tile, const Rows<const E>& factor, int64_t row, int64_t begin, bool use_packs) {
  constexpr int kSlice = Slices<E, kSize>::kSlice;
  if constexpr (is_along_k)
    start_tile<kSize, kSlice, kThreads>(tile, factor, row, begin, use_packs);
  else
    start_tile<kSlice, kSize, kThreads>(tile, factor, begin, row, use_packs);
}

/// The part of a result tile of kSize × kSize that a warp has. Eight warps have two rows of four parts: 64 × 32 of a
/// tile of 128.
template <int kSize>
struct Part {
  static constexpr int kDown = kSize / 2 / 16, kAcross = kSize / 4 / 8;
  Sums total[kDown][kAcross] = {};

  __device__ static int row() { return static_cast<int>(threadIdx.x) / kWarp / 4 * (kSize / 2); }
  __device__ static int col() { return static_cast<int>(threadIdx.x) / kWarp % 4 * (kSize / 4); }
};

/// Adds the products of the tile at (top, left).
template <int kSize, bool a_along_k, bool b_along_k, class E>
__device__ inline void add_slices(Part<kSize>& part, Slices<E, kSize>* slices, const MatmulArguments& x, const E* a,
                                  const E* b, int64_t top, int64_t left) {
  using Own = Part<kSize>;
  constexpr int kSlice = Slices<E, kSize>::kSlice, kAlong = tile_step(kSlice), kTurned = tile_step(kSize);
  const Rows<const E> a_rows{a, x.a_step, a_along_k ? x.m : x.k, a_along_k ? x.k : x.m};
  const Rows<const E> b_rows{b, x.b_step, b_along_k ? x.n : x.k, b_along_k ? x.k : x.n};
  const auto start = [&](Slices<E, kSize>& to, int64_t begin) {
    start_slice<kSize, a_along_k>(to.a, a_rows, top, begin, x.a_packs);
    start_slice<kSize, b_along_k>(to.b, b_rows, left, begin, x.b_packs);
  };
  start(slices[0], 0);
  int now = 0;
  for (int64_t begin = 0; begin < x.k; begin += kSlice, now ^= 1) {
    await_copies();
    __syncthreads();  // all threads have this slice, and none reads the other one any more
    if (begin + kSlice < x.k) start(slices[now ^ 1], begin + kSlice);
    const Slices<E, kSize>& own = slices[now];
#pragma unroll
    for (int i = 0; i < kSlice; i += 16) {
      Left lefts[Own::kDown];
#pragma unroll
      for (int r = 0; r < Own::kDown; r++) {
        const int row = Own::row() + r * 16;
        lefts[r] = a_along_k ? load_left<false>(own.a + row * kAlong + i, kAlong)
                             : load_left<true>(own.a + i * kTurned + row, kTurned);
      }
#pragma unroll
      for (int s = 0; s < Own::kAcross; s += 2) {
        const int col = Own::col() + s * 8;
        const Rights rights = b_along_k ? load_rights<false>(own.b + col * kAlong + i, kAlong)
                                        : load_rights<true>(own.b + i * kTurned + col, kTurned);
#pragma unroll
        for (int r = 0; r < Own::kDown; r++) add_products<E>(&part.total[r][s], lefts[r], rights);
      }
    }
  }
}

/// Writes up to two neighbours of a row of the result; `left` of them are inside.
template <class E>
__device__ inline void write_pair(const MatmulArguments& x, E* to, int left, const float* sums) {
  if (left >= 2 && x.c_pairs) {
    auto* const both = reinterpret_cast<uint32_t*>(to);
    const uint32_t old = x.accumulate ? *both : 0;
    *both = rounded_pair<E>(read_as<float>(E{static_cast<uint16_t>(old)}) + sums[0],
                            read_as<float>(E{static_cast<uint16_t>(old >> 16)}) + sums[1]);
    return;
  }
#pragma unroll
  for (int k = 0; k < 2; k++) {
    if (k < left) to[k] = write_as<E>(x.accumulate ? read_as<float>(to[k]) + sums[k] : sums[k]);
  }
}

template <int kSize, class E>
__device__ inline void add_products_of(Part<kSize>& part, Slices<E, kSize>* slices, const MatmulArguments& x,
                                       const E* a, const E* b, int64_t top, int64_t left) {
  if (x.trans_a)
    x.trans_b ? add_slices<kSize, false, true>(part, slices, x, a, b, top, left)
              : add_slices<kSize, false, false>(part, slices, x, a, b, top, left);
  else
    x.trans_b ? add_slices<kSize, true, true>(part, slices, x, a, b, top, left)
              : add_slices<kSize, true, false>(part, slices, x, a, b, top, left);
}

template <int kSize, class E>
__device__ inline void write_part(const MatmulArguments& x, E* c, const Part<kSize>& part, int64_t top, int64_t left) {
  const int64_t row = top + part.row() + row_of_lane(), col = left + part.col() + col_of_lane();
  if (row >= x.m || col >= x.n) return;
  E* to = c + row * x.n + col;
  // Beyond the tile, it does not matter how many rows and columns are left.
  const int rows = static_cast<int>(x.m - row < kSize ? x.m - row : kSize),
            cols = static_cast<int>(x.n - col < kSize ? x.n - col : kSize);
#pragma unroll
  for (int r = 0; r < part.kDown * 2; r++, to += 8 * x.n) {
    if (r * 8 >= rows) break;
#pragma unroll
    for (int s = 0; s < part.kAcross; s++) write_pair(x, to + s * 8, cols - s * 8, part.total[r / 2][s].at + r % 2 * 2);
  }
}

template <int kSize, class E>
__device__ void matmul_halves(const MatmulArguments& x) {
  __shared__ Slices<E, kSize> slices[2];
  const TilePosition at = tile_position_of(x);
  const int64_t top = int64_t{at.down} * kSize, left = int64_t{at.across} * kSize;
  Part<kSize> part;
  add_products_of(part, slices, x, static_cast<const E*>(x.a) + offset_of(x, at.matrix, x.a_stride),
                  static_cast<const E*>(x.b) + offset_of(x, at.matrix, x.b_stride), top, left);
  write_part(x, static_cast<E*>(x.c) + offset_of(x, at.matrix, x.c_stride), part, top, left);
}

RINGWISE_BLOCK_KERNEL(matmul_float, MatmulArguments) { matmul<float>(arguments); }
RINGWISE_BLOCK_KERNEL(matmul_double, MatmulArguments) { matmul<double>(arguments); }
RINGWISE_TILE_KERNEL(matmul_half, MatmulArguments) { matmul_halves<kWideTile, Half>(arguments); }
RINGWISE_TILE_KERNEL(matmul_bfloat, MatmulArguments) { matmul_halves<kWideTile, BFloat>(arguments); }
RINGWISE_BLOCK_KERNEL(matmul_small_half, MatmulArguments) { matmul_halves<kTile, Half>(arguments); }
RINGWISE_BLOCK_KERNEL(matmul_small_bfloat, MatmulArguments) { matmul_halves<kTile, BFloat>(arguments); }

}  // namespace ringwise::tensor::cuda
