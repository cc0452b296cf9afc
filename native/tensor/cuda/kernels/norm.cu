// Layer and root-mean-square normalisation of rows and their gradients, as in cpu/nn/norm.h. A warp, or a block if rows
// are long, has a row. Its threads keep the row in registers, so each operand is read once from memory; only rows that
// are too long for the registers of a block (norm_long) are read again in each pass. Mean and variance take two passes.
//
// Sums over rows, the gradients of gamma and beta, are a kernel of their own: a block has neighbouring columns and a
// chunk of the rows, and a second launch adds the chunks in a fixed order.
#include "tensor/cuda/kernels/shared/team.cuh"

namespace ringwise::tensor::cuda {

constexpr int kKept = 32;  // elements of a row that a thread keeps

/// A row of `cols` elements that `lanes` threads share: thread `lane` has every lanes-th pack of 16 bytes. With kIsKept
/// a thread keeps its packs in registers, and a row has at most kKept · lanes elements; otherwise each pass reads them
/// again.
template <class E, bool kIsKept>
struct Row {
  static constexpr int kPack = 16 / sizeof(E), kPacks = kKept / kPack;

  const E* data;
  int64_t cols;
  int lane, lanes;
  bool use_packs;  // whether whole packs can be moved at once; then cols is a multiple of kPack
  Elements<E, kPack> kept[kIsKept ? kPacks : 1];

  /// Calls visit(number of the pack, its first column, its number of elements) for each pack of this thread.
  template <class Visit>
  __device__ void each(Visit visit) const {
    const auto visit_at = [&](int p, int64_t begin) {
      visit(p, begin, static_cast<int>(cols - begin < kPack ? cols - begin : kPack));
    };
    if constexpr (kIsKept) {
#pragma unroll
      for (int p = 0; p < kPacks; p++) {
        const int64_t begin = (static_cast<int64_t>(p) * lanes + lane) * kPack;
        if (begin < cols) visit_at(p, begin);
      }
    } else {
      for (int64_t begin = lane * kPack; begin < cols; begin += static_cast<int64_t>(lanes) * kPack) visit_at(0, begin);
    }
  }

  /// Begins the loads of all packs before the first is used.
  __device__ void load() {
    if constexpr (kIsKept) {
      each([&](int p, int64_t begin, int n) { kept[p] = load_up_to<kPack>(data + begin, n, use_packs); });
    }
  }
  __device__ Elements<E, kPack> pack(int p, int64_t begin, int n) const {
    if constexpr (kIsKept)
      return kept[p];
    else
      return load_up_to<kPack>(data + begin, n, use_packs);
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

/// Calls body(row, lane of this thread, lanes) for the rows of this thread's warp or block.
template <bool kIsWarp, class Body>
__device__ inline void for_each_row(int64_t rows, Body body) {
  const int lanes = kIsWarp ? kWarp : static_cast<int>(blockDim.x), teams = static_cast<int>(blockDim.x) / lanes;
  const int team = static_cast<int>(threadIdx.x) / lanes, lane = static_cast<int>(threadIdx.x) % lanes;
  const int64_t step = static_cast<int64_t>(gridDim.x) * teams;
  for (int64_t r = static_cast<int64_t>(blockIdx.x) * teams + team; r < rows; r += step) body(r, lane, lanes);
}

template <class E, class T, bool kIsWarp, bool kIsKept>
__device__ void norm(const RowNormArguments& x) {
  constexpr int kPack = Row<E, kIsKept>::kPack;
  __shared__ T shared[kThreads / kWarp];
  const bool use_packs = x.use_packs != 0;
  const T count = static_cast<T>(x.cols);
  const E *gamma = static_cast<const E*>(x.gamma), *beta = static_cast<const E*>(x.beta);
  for_each_row<kIsWarp>(x.rows, [&](int64_t r, int lane, int lanes) {
    E* out = static_cast<E*>(x.out) + r * x.cols;
    Row<E, kIsKept> row{static_cast<const E*>(x.a) + r * x.cols, x.cols, lane, lanes, use_packs, {}};
    row.load();
    if (x.addend) {
      E* sum = static_cast<E*>(x.sum) + r * x.cols;
      Row<E, kIsKept> addend{static_cast<const E*>(x.addend) + r * x.cols, x.cols, lane, lanes, use_packs, {}};
      addend.load();
      row.each([&](int p, int64_t begin, int n) {
        Elements<E, kPack> values = row.pack(p, begin, n);
        const Elements<E, kPack> others = addend.pack(p, begin, n);
        for (int k = 0; k < kPack; k++) values.at[k] = write_as<E>(read_as<T>(values.at[k]) + read_as<T>(others.at[k]));
        store_up_to(sum + begin, values, n, use_packs);
        if constexpr (kIsKept) row.kept[p] = values;
      });
      row.data = sum;  // for passes that read again
    }
    T total = 0;
    row.each([&](int p, int64_t begin, int n) {
      const Elements<E, kPack> values = row.pack(p, begin, n);
      for (int k = 0; k < kPack; k++) total += read_as<T>(values.at[k]);
    });
    const T mean = x.mean ? over_row<kIsWarp>(total, shared) / count : T(0);
    T squares = 0;
    row.each([&](int p, int64_t begin, int n) {
      const Elements<E, kPack> values = row.pack(p, begin, n);
      for (int k = 0; k < kPack; k++) {
        const T difference = read_as<T>(values.at[k]) - mean;
        squares += k < n ? difference * difference : T(0);
      }
    });
    const T rstd = T(1) / sqrt(over_row<kIsWarp>(squares, shared) / count + static_cast<T>(x.eps));
    row.each([&](int p, int64_t begin, int n) {
      Elements<E, kPack> values = row.pack(p, begin, n), scale, shift;
      if (gamma) scale = load_up_to<kPack>(gamma + begin, n, use_packs);
      if (beta) shift = load_up_to<kPack>(beta + begin, n, use_packs);
      for (int k = 0; k < kPack; k++) {
        T value = (read_as<T>(values.at[k]) - mean) * rstd;
        if (gamma) value *= read_as<T>(scale.at[k]);
        if (beta) value += read_as<T>(shift.at[k]);
        values.at[k] = write_as<E>(value);
      }
      store_up_to(out + begin, values, n, use_packs);
    });
    if (lane != 0) return;
    if (x.mean) static_cast<T*>(x.mean)[r] = mean;
    static_cast<T*>(x.rstd)[r] = rstd;
  });
}

/// Computes the gradient of the input. With y = (a - mean) * rstd and g = grad_out * gamma it is
/// rstd * (g - avg(g) - y * avg(g * y)); without a mean there is no term avg(g).
template <class E, class T, bool kIsWarp, bool kIsKept>
__device__ void norm_grad(const RowNormGradArguments& x) {
  constexpr int kPack = Row<E, kIsKept>::kPack;
  __shared__ T shared[kThreads / kWarp];
  const bool use_packs = x.use_packs != 0;
  const T count = static_cast<T>(x.cols);
  for_each_row<kIsWarp>(x.rows, [&](int64_t r, int lane, int lanes) {
    E* to = static_cast<E*>(x.grad_in) + r * x.cols;
    const T mean = x.mean ? static_cast<const T*>(x.mean)[r] : T(0), rstd = static_cast<const T*>(x.rstd)[r];
    Row<E, kIsKept> row{static_cast<const E*>(x.a) + r * x.cols, x.cols, lane, lanes, use_packs, {}};
    Row<E, kIsKept> grad{static_cast<const E*>(x.grad_out) + r * x.cols, x.cols, lane, lanes, use_packs, {}};
    row.load();
    grad.load();
    /// Calls use(pack, first column, elements, y, g). Both passes compute y and g, because that takes fewer registers
    /// than to keep them.
    const auto each = [&](auto use) {
      row.each([&](int p, int64_t begin, int n) {
        const Elements<E, kPack> values = row.pack(p, begin, n), grads = grad.pack(p, begin, n);
        Elements<E, kPack> scale;
        if (x.gamma) scale = load_up_to<kPack>(static_cast<const E*>(x.gamma) + begin, n, use_packs);
        T y[kPack], g[kPack];
        for (int k = 0; k < kPack; k++) {
          y[k] = (read_as<T>(values.at[k]) - mean) * rstd;
          g[k] = read_as<T>(grads.at[k]) * (x.gamma ? read_as<T>(scale.at[k]) : T(1));
        }
        use(begin, n, y, g);
      });
    };
    T sum = 0, product = 0;
    each([&](int64_t, int n, const T* y, const T* g) {
      for (int k = 0; k < kPack; k++) {
        sum += g[k];
        product += k < n ? g[k] * y[k] : T(0);
      }
    });
    const T average = x.mean ? over_row<kIsWarp>(sum, shared) / count : T(0);
    const T slope = over_row<kIsWarp>(product, shared) / count;
    each([&](int64_t begin, int n, const T* y, const T* g) {
      Elements<E, kPack> result{};
      if (x.accumulate) result = load_up_to<kPack>(to + begin, n, use_packs);
      for (int k = 0; k < kPack; k++)
        result.at[k] = write_as<E>(read_as<T>(result.at[k]) + rstd * (g[k] - average - y[k] * slope));
      store_up_to(to + begin, result, n, use_packs);
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
