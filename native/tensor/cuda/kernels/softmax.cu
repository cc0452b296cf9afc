// Log-softmax, its gradient, the negative log-likelihood and the cross entropy, which is both in one. A block has one
// row; a row is read again for each pass, from the cache where it fits. E is the stored type. T is the computing type,
// and the type of operands with one value per row or class.
#include "tensor/cuda/kernels/shared/functions.cuh"

namespace ringwise::tensor::cuda {

/// Calls body(column, values of `rows` in that column) for this thread's share of a row. Loads 16 bytes of each row
/// before it uses the first of them.
template <class T, class E, int N, class Body>
__device__ inline void each_column(const E* const (&rows)[N], int64_t cols, Body body) {
  constexpr int kBatch = 16 / static_cast<int>(sizeof(E));
  for (int64_t begin = threadIdx.x; begin < cols; begin += static_cast<int64_t>(kBatch) * blockDim.x) {
    T values[kBatch][N];
#pragma unroll
    for (int k = 0; k < kBatch; k++) {
      const int64_t c = begin + static_cast<int64_t>(k) * blockDim.x;
      for (int n = 0; n < N; n++) values[k][n] = c < cols ? read_as<T>(rows[n][c]) : T(0);
    }
#pragma unroll
    for (int k = 0; k < kBatch; k++) {
      const int64_t c = begin + static_cast<int64_t>(k) * blockDim.x;
      if (c < cols) body(c, values[k]);
    }
  }
}

template <class T>
struct RowNorm {
  T largest, norm;  // norm: log Σ exp(value − largest)
};

/// Finds the largest value of a row and the sum in one pass: a thread rescales its sum when it finds a larger value.
template <class T, class E>
__device__ inline RowNorm<T> norm_of_row(const E* a, int64_t cols, T* shared) {
  constexpr T kNothing = -std::numeric_limits<T>::infinity();
  T largest = kNothing, sum = 0;
  each_column<T, E, 1>({a}, cols, [&](int64_t, const T* values) {
    const T value = values[0];
    if (value > largest) {
      sum = sum * exp(largest - value) + T(1);
      largest = value;
    } else if (value != kNothing) {
      sum += exp(value - largest);
    }
  });
  const T shift = over_block(largest, shared, [](T p, T q) { return max_of(p, q); });
  return {shift, log(over_block(sum * exp(largest - shift), shared, [](T p, T q) { return p + q; }))};
}

template <class T, class E>
__device__ void log_softmax(const SoftmaxArguments& x) {
  __shared__ T shared[kThreads];
  const int64_t begin = static_cast<int64_t>(blockIdx.x) * x.cols;
  const E* a = static_cast<const E*>(x.a) + begin;
  E* out = static_cast<E*>(x.out) + begin;
  const RowNorm<T> row = norm_of_row<T>(a, x.cols, shared);
  each_column<T, E, 1>({a}, x.cols,
                       [&](int64_t c, const T* values) { out[c] = write_as<E>(values[0] - row.largest - row.norm); });
}

/// a: the gradient of the output; b: the output.
template <class T, class E>
__device__ void log_softmax_grad(const SoftmaxArguments& x) {
  __shared__ T shared[kThreads];
  const int64_t begin = static_cast<int64_t>(blockIdx.x) * x.cols;
  const E *grad = static_cast<const E*>(x.a) + begin, *out = static_cast<const E*>(x.b) + begin;
  E* into = static_cast<E*>(x.out) + begin;
  T sum = 0;
  each_column<T, E, 1>({grad}, x.cols, [&](int64_t, const T* values) { sum += values[0]; });
  sum = over_block(sum, shared, [](T p, T q) { return p + q; });
  each_column<T, E, 2>({grad, out}, x.cols,
                       [&](int64_t c, const T* values) { into[c] = write_as<E>(values[0] - exp(values[1]) * sum); });
}

/// Returns the label of a row; or -1, with a fault for the host, if it is out of range.
template <class Arguments>
__device__ inline int64_t label_of(const Arguments& x, int64_t row) {
  const int64_t label =
      x.is_long ? static_cast<const int64_t*>(x.labels)[row] : static_cast<const int32_t*>(x.labels)[row];
  if (label >= 0 && label < x.cols) return label;
  *x.fault = kLabelFault;
  return -1;
}

template <class T, class E>
__device__ void nll(const NllArguments& x) {
  for_each_of_grid(x.rows, [&](int64_t row) {
    const int64_t label = label_of(x, row);
    const T value = label < 0 ? T(NAN) : read_as<T>(static_cast<const E*>(x.in)[row * x.cols + label]);
    static_cast<T*>(x.out)[row] = -value;
  });
}

template <class T, class E>
__device__ void nll_grad(const NllArguments& x) {
  const int64_t row = blockIdx.x, label = label_of(x, row);
  const E own = write_as<E>(-static_cast<const T*>(x.in)[row]), nothing = write_as<E>(T(0));
  E* into = static_cast<E*>(x.out) + row * x.cols;
  for (int64_t c = threadIdx.x; c < x.cols; c += blockDim.x) into[c] = c == label ? own : nothing;
}

/// Returns the weight of a class.
template <class T>
__device__ inline T weight_of(const CrossEntropyArguments& x, int64_t c) {
  return x.weight ? static_cast<const T*>(x.weight)[c] : T(1);
}

/// Returns whether the label of a row is ignored; such labels need not be classes.
__device__ inline bool is_ignored(const CrossEntropyArguments& x, int64_t row) {
  return x.ignored ==
         (x.is_long ? static_cast<const int64_t*>(x.labels)[row] : static_cast<const int32_t*>(x.labels)[row]);
}

template <class T, class E>
__device__ void cross_entropy(const CrossEntropyArguments& x) {
  __shared__ T shared[kThreads];
  const int64_t row = blockIdx.x;
  const bool counts = !is_ignored(x, row);
  const int64_t label = counts ? label_of(x, row) : -1;
  T *losses = static_cast<T*>(x.out), *kept = static_cast<T*>(x.kept) + 2 * row;
  if (threadIdx.x == 0 && x.counts) static_cast<T*>(x.counts)[row] = label < 0 ? T(0) : weight_of<T>(x, label);
  if (label < 0) {
    if (threadIdx.x == 0) losses[row] = kept[0] = kept[1] = counts ? T(NAN) : T(0);
    return;
  }
  const E* a = static_cast<const E*>(x.scores) + row * x.cols;
  const auto [shift, norm] = norm_of_row<T>(a, x.cols, shared);
  T distances = 0;
  if (x.smoothing > 0) {
    for (int64_t c = threadIdx.x; c < x.cols; c += blockDim.x)
      distances += weight_of<T>(x, c) * (norm - (read_as<T>(a[c]) - shift));
    distances = over_block(distances, shared, [](T p, T q) { return p + q; });
  }
  if (threadIdx.x != 0) return;
  kept[0] = shift;
  kept[1] = norm;
  losses[row] = static_cast<T>(1 - x.smoothing) * weight_of<T>(x, label) * (norm - (read_as<T>(a[label]) - shift)) +
                static_cast<T>(x.smoothing / static_cast<double>(x.cols)) * distances;
}

template <class T, class E>
__device__ void cross_entropy_grad(const CrossEntropyArguments& x) {
  __shared__ T shared[kThreads];
  const int64_t row = blockIdx.x;
  const int64_t label = is_ignored(x, row) ? -1 : label_of(x, row);
  const E* a = static_cast<const E*>(x.scores) + row * x.cols;
  E* into = static_cast<E*>(x.out) + row * x.cols;
  if (label < 0) {
    for (int64_t c = threadIdx.x; c < x.cols; c += blockDim.x) into[c] = write_as<E>(T(0));
    return;
  }
  T total = 0;  // of all weights
  if (x.smoothing > 0) {
    for (int64_t c = threadIdx.x; c < x.cols; c += blockDim.x) total += weight_of<T>(x, c);
    total = over_block(total, shared, [](T p, T q) { return p + q; });
  }
  const T divisor = x.divisor ? *static_cast<const T*>(x.divisor) : static_cast<T>(x.number);
  const T scale = static_cast<const T*>(x.grad)[x.is_per_row ? row : 0] / divisor;
  const T own = static_cast<T>(1 - x.smoothing) * weight_of<T>(x, label) * scale;
  const T spread = static_cast<T>(x.smoothing / static_cast<double>(x.cols)) * scale, factor = own + spread * total;
  const T largest = static_cast<const T*>(x.kept)[2 * row], norm = static_cast<const T*>(x.kept)[2 * row + 1];
  each_column<T, E, 1>({a}, x.cols, [&](int64_t c, const T* values) {
    const T even = x.smoothing > 0 ? spread * weight_of<T>(x, c) : T(0);
    into[c] = write_as<E>(exp(values[0] - largest - norm) * factor - even - (c == label ? own : T(0)));
  });
}

#define RINGWISE_SOFTMAX_KERNELS(MAKE, name, Arguments)               \
  MAKE(name##_float, Arguments) { name<float, float>(arguments); }    \
  MAKE(name##_double, Arguments) { name<double, double>(arguments); } \
  MAKE(name##_half, Arguments) { name<float, Half>(arguments); }      \
  MAKE(name##_bfloat, Arguments) { name<float, BFloat>(arguments); }

RINGWISE_SOFTMAX_KERNELS(RINGWISE_BLOCK_KERNEL, cross_entropy, CrossEntropyArguments)
RINGWISE_SOFTMAX_KERNELS(RINGWISE_BLOCK_KERNEL, cross_entropy_grad, CrossEntropyArguments)
RINGWISE_SOFTMAX_KERNELS(RINGWISE_BLOCK_KERNEL, log_softmax, SoftmaxArguments)
RINGWISE_SOFTMAX_KERNELS(RINGWISE_BLOCK_KERNEL, log_softmax_grad, SoftmaxArguments)
RINGWISE_SOFTMAX_KERNELS(RINGWISE_KERNEL, nll, NllArguments)
RINGWISE_SOFTMAX_KERNELS(RINGWISE_KERNEL, nll_grad, NllArguments)

}  // namespace ringwise::tensor::cuda
