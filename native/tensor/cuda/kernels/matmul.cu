// Matrix products without a vendor library: tiles of 64 × 64, whose factors pass through shared memory in slices of 16
// along k, with 4 × 4 results per thread. Products are added in the order of k.
#include "tensor/cuda/kernels/element.cuh"

namespace ringwise::tensor::cuda {

constexpr int kTile = 64, kDeep = 16, kOwn = 4;  // kOwn² results for each of the (kTile / kOwn)² = kThreads threads
static_assert((kTile / kOwn) * (kTile / kOwn) == kThreads && kTile * kDeep % kThreads == 0);

/// Returns element (row, i) of a factor whose rows are the rows (or columns) of the result; 0 outside.
template <class T, class E>
__device__ inline T factor(const E* data, int64_t row, int64_t i, int64_t rows, int64_t k, int64_t step,
                           bool is_along_k) {
  if (row >= rows || i >= k) return T(0);
  return read_as<T>(is_along_k ? data[row * step + i] : data[i * step + row]);
}

/// Elements are stored as E and multiplied as T.
template <class E, class T>
__device__ void multiply(const MatmulArguments& x, E* c, const E* a, const E* b, int64_t top, int64_t left) {
  // One column more than is used, so that threads that write a column meet different banks.
  __shared__ T a_tile[kDeep][kTile + 1], b_tile[kDeep][kTile + 1];
  const int thread = static_cast<int>(threadIdx.x);
  const int own_row = thread / (kTile / kOwn) * kOwn, own_col = thread % (kTile / kOwn) * kOwn;
  const bool a_along_k = !x.trans_a, b_along_k = x.trans_b != 0;
  T total[kOwn][kOwn] = {};
  for (int64_t begin = 0; begin < x.k; begin += kDeep) {
    for (int e = thread; e < kTile * kDeep; e += kThreads) {
      // Neighbouring threads read along the dense dimension.
      const int a_row = a_along_k ? e / kDeep : e % kTile, a_i = a_along_k ? e % kDeep : e / kTile;
      a_tile[a_i][a_row] = factor<T>(a, top + a_row, begin + a_i, x.m, x.k, x.a_step, a_along_k);
      const int b_col = b_along_k ? e / kDeep : e % kTile, b_i = b_along_k ? e % kDeep : e / kTile;
      b_tile[b_i][b_col] = factor<T>(b, left + b_col, begin + b_i, x.n, x.k, x.b_step, b_along_k);
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
#pragma unroll
  for (int r = 0; r < kOwn; r++) {
    const int64_t row = top + own_row + r;
#pragma unroll
    for (int s = 0; s < kOwn; s++) {
      const int64_t col = left + own_col + s;
      if (row >= x.m || col >= x.n) continue;
      E& to = c[row * x.n + col];
      to = write_as<E>(x.accumulate ? read_as<T>(to) + total[r][s] : total[r][s]);
    }
  }
}

/// The grid is (columns of tiles, rows of tiles, matrices); if it is smaller, a block takes several.
template <class E, class T>
__device__ void matmul(const MatmulArguments& x) {
  for (int64_t matrix = blockIdx.z; matrix < x.batch; matrix += gridDim.z) {
    int64_t to = 0, a = 0, b = 0;
    for_each_dimension(matrix, x.rank, x.shape, [&](int d, int64_t index) {
      to += index * x.c_stride[d];
      a += index * x.a_stride[d];
      b += index * x.b_stride[d];
    });
    for (int64_t top = static_cast<int64_t>(blockIdx.y) * kTile; top < x.m;
         top += static_cast<int64_t>(gridDim.y) * kTile) {
      multiply<E, T>(x, static_cast<E*>(x.c) + to, static_cast<const E*>(x.a) + a, static_cast<const E*>(x.b) + b, top,
                     static_cast<int64_t>(blockIdx.x) * kTile);
    }
  }
}

RINGWISE_BLOCK_KERNEL(matmul_float, MatmulArguments) { matmul<float, float>(arguments); }
RINGWISE_BLOCK_KERNEL(matmul_double, MatmulArguments) { matmul<double, double>(arguments); }
RINGWISE_BLOCK_KERNEL(matmul_half, MatmulArguments) { matmul<Half, float>(arguments); }
RINGWISE_BLOCK_KERNEL(matmul_bfloat, MatmulArguments) { matmul<BFloat, float>(arguments); }

}  // namespace ringwise::tensor::cuda
