// Layer and root-mean-square normalisation of rows and their gradients, as in cpu/nn/norm.h. A warp, or a block if rows
// are long, has a row. Its threads keep the row in registers, so each operand is read once from memory. Mean and
// variance take two passes over the registers.
//
// Sums over rows, the gradients of gamma and beta, are a kernel of their own: a block has neighbouring columns and a
// chunk of the rows, and a second launch adds the chunks in a fixed order.
#include "tensor/cuda/kernels/team.cuh"

namespace ringwise::tensor::cuda {

constexpr int kPacks = 8;  // that a thread keeps of a row

/// A row as `lanes` threads share it: thread `lane` has every lanes-th pack of four. With kIsKept its elements stay in
/// registers, and the row must have at most 4 · kPacks · lanes; otherwise each pass reads them again.
template <class T, bool kIsKept>
struct Row {
  int64_t cols;
  int lane, lanes;
  T kept[kIsKept ? kPacks : 1][4];

  /// Calls visit(pack of `kept`, first column, number of elements) for each pack of this thread.
  template <class Visit>
  __device__ void each(Visit visit) {
    if constexpr (kIsKept) {
#pragma unroll
      for (int p = 0; p < kPacks; p++) {
        const int64_t begin = (static_cast<int64_t>(p) * lanes + lane) * 4;
        if (begin < cols) visit(p, begin, static_cast<int>(cols - begin < 4 ? cols - begin : 4));
      }
    } else {
      for (int64_t begin = lane * 4; begin < cols; begin += static_cast<int64_t>(lanes) * 4) {
        visit(0, begin, static_cast<int>(cols - begin < 4 ? cols - begin : 4));
      }
    }
  }
};

/// Returns the sum over the threads of a row.
template <bool kIsWarp, class T>
__device__ inline T over_row(T value, T* shared) {
  const auto add = [](T a, T b) { return a + b; };
  if constexpr (kIsWarp)
    return over_warp(value, add);
  else
    return over_block(value, shared, add);
}

/// Calls body(row, first lane, lanes) for the rows of this thread's warp or block.
template <bool kIsWarp, class Body>
__device__ inline void for_each_row(int64_t rows, Body body) {
  const int lanes = kIsWarp ? kWarp : static_cast<int>(blockDim.x), teams = static_cast<int>(blockDim.x) / lanes;
  const int team = static_cast<int>(threadIdx.x) / lanes, lane = static_cast<int>(threadIdx.x) % lanes;
  const int64_t step = static_cast<int64_t>(gridDim.x) * teams;
  for (int64_t r = static_cast<int64_t>(blockIdx.x) * teams + team; r < rows; r += step) body(r, lane, lanes);
}

template <class E, class T, bool kIsWarp, bool kIsKept>
__device__ void norm(const RowNormArguments& x) {
  __shared__ T shared[kThreads / kWarp];
  const bool use_packs = x.use_packs != 0;
  const T count = static_cast<T>(x.cols);
  const E *gamma = static_cast<const E*>(x.gamma), *beta = static_cast<const E*>(x.beta);
  for_each_row<kIsWarp>(x.rows, [&](int64_t r, int lane, int lanes) {
    const E* a = static_cast<const E*>(x.a) + r * x.cols;
    E* out = static_cast<E*>(x.out) + r * x.cols;
    E* sum = x.addend ? static_cast<E*>(x.sum) + r * x.cols : nullptr;
    Row<T, kIsKept> row{x.cols, lane, lanes, {}};
    const auto again = [&](int p, int64_t begin, int n) {
      if constexpr (!kIsKept) read_four(row.kept[p], (sum ? sum : a) + begin, n, use_packs);
    };
    T total = 0;
    row.each([&](int p, int64_t begin, int n) {
      T* four = row.kept[p];
      read_four(four, a + begin, n, use_packs);
      if (sum) {
        T other[4];
        read_four(other, static_cast<const E*>(x.addend) + r * x.cols + begin, n, use_packs);
        for (int k = 0; k < 4; k++) four[k] = read_as<T>(write_as<E>(four[k] + other[k]));
        write_four(sum + begin, four, n, use_packs);
      }
      for (int k = 0; k < 4; k++) total += four[k];
    });
    const T mean = x.mean ? over_row<kIsWarp>(total, shared) / count : T(0);
    T squares = 0;
    row.each([&](int p, int64_t begin, int n) {
      again(p, begin, n);
      T* four = row.kept[p];
      for (int k = 0; k < 4; k++) squares += k < n ? (four[k] - mean) * (four[k] - mean) : T(0);
    });
    const T rstd = T(1) / sqrt(over_row<kIsWarp>(squares, shared) / count + static_cast<T>(x.eps));
    row.each([&](int p, int64_t begin, int n) {
      again(p, begin, n);
      T* four = row.kept[p];
      T scale[4] = {1, 1, 1, 1}, shift[4] = {};
      if (gamma) read_four(scale, gamma + begin, n, use_packs);
      if (beta) read_four(shift, beta + begin, n, use_packs);
      for (int k = 0; k < 4; k++) four[k] = (four[k] - mean) * rstd * scale[k] + shift[k];
      write_four(out + begin, four, n, use_packs);
    });
    if (lane != 0) return;
    if (x.mean) static_cast<T*>(x.mean)[r] = mean;
    static_cast<T*>(x.rstd)[r] = rstd;
  });
}

/// The gradient of the input. With y = (a - mean) * rstd and g = grad_out * gamma it is rstd * (g - avg(g) - y *
/// avg(g * y)); without a mean there is no middle term. A thread keeps y and g.
template <class E, class T, bool kIsWarp, bool kIsKept>
__device__ void norm_grad(const RowNormGradArguments& x) {
  __shared__ T shared[kThreads / kWarp];
  const bool use_packs = x.use_packs != 0;
  const T count = static_cast<T>(x.cols);
  for_each_row<kIsWarp>(x.rows, [&](int64_t r, int lane, int lanes) {
    const E *a = static_cast<const E*>(x.a) + r * x.cols, *grad = static_cast<const E*>(x.grad_out) + r * x.cols;
    E* to = static_cast<E*>(x.grad_in) + r * x.cols;
    const T mean = x.mean ? static_cast<const T*>(x.mean)[r] : T(0), rstd = static_cast<const T*>(x.rstd)[r];
    Row<T, kIsKept> normed{x.cols, lane, lanes, {}};
    T scaled[kIsKept ? kPacks : 1][4];
    const auto read = [&](int64_t begin, int n, T* y, T* g) {
      read_four(y, a + begin, n, use_packs);
      read_four(g, grad + begin, n, use_packs);
      T scale[4] = {1, 1, 1, 1};
      if (x.gamma) read_four(scale, static_cast<const E*>(x.gamma) + begin, n, use_packs);
      for (int k = 0; k < 4; k++) {
        y[k] = (y[k] - mean) * rstd;
        g[k] *= scale[k];
      }
    };
    T sum = 0, product = 0;
    normed.each([&](int p, int64_t begin, int n) {
      T *y = normed.kept[p], *g = scaled[p];
      read(begin, n, y, g);
      for (int k = 0; k < 4; k++) {
        sum += g[k];
        product += k < n ? g[k] * y[k] : T(0);
      }
    });
    const T average = x.mean ? over_row<kIsWarp>(sum, shared) / count : T(0);
    const T slope = over_row<kIsWarp>(product, shared) / count;
    normed.each([&](int p, int64_t begin, int n) {
      T *y = normed.kept[p], *g = scaled[p], before[4] = {};
      if constexpr (!kIsKept) read(begin, n, y, g);
      if (x.accumulate) read_four(before, to + begin, n, use_packs);
      for (int k = 0; k < 4; k++) before[k] += rstd * (g[k] - average - y[k] * slope);
      write_four(to + begin, before, n, use_packs);
    });
  });
}

template <class E, class T>
__device__ inline void write_columns(const RowNormGradArguments& x, int64_t col, T product, T sum) {
  if (x.grad_gamma) static_cast<E*>(x.grad_gamma)[col] = write_as<E>(product);
  if (x.grad_beta) static_cast<E*>(x.grad_beta)[col] = write_as<E>(sum);
}

/// Sums grad_out * y and grad_out over the rows of chunk blockIdx.y, for packs of kPack columns. A thread loads kRows
/// rows before it uses the first. Writes to `partial`, or to the results if there is one chunk.
template <class E, class T, int kPack, int kRows>
__device__ inline void sum_columns(const RowNormGradArguments& x, T* shared) {
  const Team team(x.lanes, true);
  const int64_t col = (static_cast<int64_t>(blockIdx.x) * team.lanes + team.lane) * kPack;
  const int64_t begin = static_cast<int64_t>(blockIdx.y) * x.chunk;
  const int64_t end = col >= x.cols ? 0 : begin + x.chunk < x.rows ? begin + x.chunk : x.rows;
  const E *grad = static_cast<const E*>(x.grad_out) + col, *a = static_cast<const E*>(x.a) + col;
  const T *means = static_cast<const T*>(x.mean), *rstds = static_cast<const T*>(x.rstd);
  T totals[2 * kPack] = {};
  for (int64_t r = begin + team.way; r < end; r += kRows * team.ways) {
    Elements<E, kPack> grads[kRows], values[kRows];
    T mean[kRows], rstd[kRows];
#pragma unroll
    for (int u = 0; u < kRows; u++) {
      const int64_t row = r + u * team.ways < end ? r + u * team.ways : r;
      grads[u] = load_elements<E, kPack>(grad + row * x.cols);
      mean[u] = rstd[u] = 0;
      if (!x.grad_gamma) continue;
      values[u] = load_elements<E, kPack>(a + row * x.cols);
      if (means) mean[u] = means[row];
      rstd[u] = rstds[row];
    }
#pragma unroll
    for (int u = 0; u < kRows; u++) {
      if (r + u * team.ways >= end) continue;
#pragma unroll
      for (int k = 0; k < kPack; k++) {
        const T g = read_as<T>(grads[u].at[k]);
        if (x.grad_gamma) totals[k] += g * ((read_as<T>(values[u].at[k]) - mean[u]) * rstd[u]);
        totals[kPack + k] += g;
      }
    }
  }
  T* to = static_cast<T*>(x.partial) + static_cast<int64_t>(blockIdx.y) * 2 * x.cols;
  add_pairs<kPack>(team, x.cols, totals, shared, [&](int64_t col, T product, T sum) {
    if (x.chunks == 1) return write_columns<E>(x, col, product, sum);
    to[col] = product;
    to[x.cols + col] = sum;
  });
}

template <class E, class T>
__device__ void norm_grad_columns(const RowNormGradArguments& x) {
  constexpr int kPack = 16 / sizeof(E);
  __shared__ T shared[2 * kPack * kThreads];
  if (x.use_column_packs)
    sum_columns<E, T, kPack, 2>(x, shared);
  else
    sum_columns<E, T, 1, 4>(x, shared);
}

template <class E, class T>
__device__ void norm_grad_chunks(const RowNormGradArguments& x) {
  __shared__ T shared[2 * kThreads];
  add_chunks(static_cast<const T*>(x.partial), x.chunks, x.cols, shared,
             [&](int64_t col, T product, T sum) { write_columns<E>(x, col, product, sum); });
}

#define RINGWISE_NORMS(name, E, T)                                                                                 \
  RINGWISE_BLOCK_KERNEL(norm_warp_##name, RowNormArguments) { norm<E, T, true, true>(arguments); }                 \
  RINGWISE_BLOCK_KERNEL(norm_block_##name, RowNormArguments) { norm<E, T, false, true>(arguments); }               \
  RINGWISE_BLOCK_KERNEL(norm_long_##name, RowNormArguments) { norm<E, T, false, false>(arguments); }               \
  RINGWISE_BLOCK_KERNEL(norm_grad_warp_##name, RowNormGradArguments) { norm_grad<E, T, true, true>(arguments); }   \
  RINGWISE_BLOCK_KERNEL(norm_grad_block_##name, RowNormGradArguments) { norm_grad<E, T, false, true>(arguments); } \
  RINGWISE_BLOCK_KERNEL(norm_grad_long_##name, RowNormGradArguments) { norm_grad<E, T, false, false>(arguments); } \
  RINGWISE_BLOCK_KERNEL(norm_grad_columns_##name, RowNormGradArguments) { norm_grad_columns<E, T>(arguments); }    \
  RINGWISE_BLOCK_KERNEL(norm_grad_chunks_##name, RowNormGradArguments) { norm_grad_chunks<E, T>(arguments); }
RINGWISE_NORMS(float, float, float)
RINGWISE_NORMS(double, double, double)
RINGWISE_NORMS(half, Half, float)
RINGWISE_NORMS(bfloat, BFloat, float)

}  // namespace ringwise::tensor::cuda
