// Log-softmax, its gradient, the negative log-likelihood and the cross entropy, which is both in one. A block has one
// row; a row is read again for each pass, from the cache where it fits.
#include "tensor/cuda/kernels/functions.cuh"

namespace ringwise::tensor::cuda {

template <class T>
__device__ void log_softmax(const SoftmaxArguments& x) {
  __shared__ T shared[kThreads];
  const int64_t begin = static_cast<int64_t>(blockIdx.x) * x.cols;
  const T* a = static_cast<const T*>(x.a) + begin;
  T* out = static_cast<T*>(x.out) + begin;
  T largest = -std::numeric_limits<T>::infinity();
  for (int64_t c = threadIdx.x; c < x.cols; c += blockDim.x) largest = max_of(largest, a[c]);
  largest = over_block(largest, shared, [](T p, T q) { return max_of(p, q); });
  T sum = 0;
  for (int64_t c = threadIdx.x; c < x.cols; c += blockDim.x) sum += exp(a[c] - largest);
  const T norm = log(over_block(sum, shared, [](T p, T q) { return p + q; }));
  for (int64_t c = threadIdx.x; c < x.cols; c += blockDim.x) out[c] = a[c] - largest - norm;
}

/// a: the gradient of the output; b: the output.
template <class T>
__device__ void log_softmax_grad(const SoftmaxArguments& x) {
  __shared__ T shared[kThreads];
  const int64_t begin = static_cast<int64_t>(blockIdx.x) * x.cols;
  const T *grad = static_cast<const T*>(x.a) + begin, *out = static_cast<const T*>(x.b) + begin;
  T* into = static_cast<T*>(x.out) + begin;
  T sum = 0;
  for (int64_t c = threadIdx.x; c < x.cols; c += blockDim.x) sum += grad[c];
  sum = over_block(sum, shared, [](T p, T q) { return p + q; });
  for (int64_t c = threadIdx.x; c < x.cols; c += blockDim.x) into[c] = grad[c] - exp(out[c]) * sum;
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

template <class T>
__device__ void nll(const NllArguments& x) {
  for_each_of_grid(x.rows, [&](int64_t row) {
    const int64_t label = label_of(x, row);
    static_cast<T*>(x.out)[row] = label < 0 ? T(NAN) : -static_cast<const T*>(x.in)[row * x.cols + label];
  });
}

template <class T>
__device__ void nll_grad(const NllArguments& x) {
  for_each_of_grid(x.rows * x.cols, [&](int64_t i) {
    const int64_t row = i / x.cols;
    static_cast<T*>(x.out)[i] = i - row * x.cols == label_of(x, row) ? -static_cast<const T*>(x.in)[row] : T(0);
  });
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

/// Finds the largest score and the sum in one pass: a thread rescales its sum when it finds a larger score.
template <class T>
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
  constexpr T kNothing = -std::numeric_limits<T>::infinity();
  const T* a = static_cast<const T*>(x.scores) + row * x.cols;
  T largest = kNothing, sum = 0;
  for (int64_t c = threadIdx.x; c < x.cols; c += blockDim.x) {
    const T value = a[c];
    if (value > largest) {
      sum = sum * exp(largest - value) + T(1);
      largest = value;
    } else if (value != kNothing) {
      sum += exp(value - largest);
    }
  }
  const T shift = over_block(largest, shared, [](T p, T q) { return max_of(p, q); });
  const T norm = log(over_block(sum * exp(largest - shift), shared, [](T p, T q) { return p + q; }));
  T distances = 0;
  if (x.smoothing > 0) {
    for (int64_t c = threadIdx.x; c < x.cols; c += blockDim.x)
      distances += weight_of<T>(x, c) * (norm - (a[c] - shift));
    distances = over_block(distances, shared, [](T p, T q) { return p + q; });
  }
  if (threadIdx.x != 0) return;
  kept[0] = shift;
  kept[1] = norm;
  losses[row] = static_cast<T>(1 - x.smoothing) * weight_of<T>(x, label) * (norm - (a[label] - shift)) +
                static_cast<T>(x.smoothing / static_cast<double>(x.cols)) * distances;
}

template <class T>
__device__ void cross_entropy_grad(const CrossEntropyArguments& x) {
  __shared__ T shared[kThreads];
  const int64_t row = blockIdx.x;
  const int64_t label = is_ignored(x, row) ? -1 : label_of(x, row);
  const T *a = static_cast<const T*>(x.scores) + row * x.cols, *kept = static_cast<const T*>(x.kept) + 2 * row;
  T* into = static_cast<T*>(x.out) + row * x.cols;
  if (label < 0) {
    for (int64_t c = threadIdx.x; c < x.cols; c += blockDim.x) into[c] = T(0);
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
  for (int64_t c = threadIdx.x; c < x.cols; c += blockDim.x) {
    const T even = x.smoothing > 0 ? spread * weight_of<T>(x, c) : T(0);
    into[c] = exp(a[c] - kept[0] - kept[1]) * factor - even - (c == label ? own : T(0));
  }
}

RINGWISE_BLOCK_KERNEL(cross_entropy_float, CrossEntropyArguments) { cross_entropy<float>(arguments); }
RINGWISE_BLOCK_KERNEL(cross_entropy_double, CrossEntropyArguments) { cross_entropy<double>(arguments); }
RINGWISE_BLOCK_KERNEL(cross_entropy_grad_float, CrossEntropyArguments) { cross_entropy_grad<float>(arguments); }
RINGWISE_BLOCK_KERNEL(cross_entropy_grad_double, CrossEntropyArguments) { cross_entropy_grad<double>(arguments); }
RINGWISE_BLOCK_KERNEL(log_softmax_float, SoftmaxArguments) { log_softmax<float>(arguments); }
RINGWISE_BLOCK_KERNEL(log_softmax_double, SoftmaxArguments) { log_softmax<double>(arguments); }
RINGWISE_BLOCK_KERNEL(log_softmax_grad_float, SoftmaxArguments) { log_softmax_grad<float>(arguments); }
RINGWISE_BLOCK_KERNEL(log_softmax_grad_double, SoftmaxArguments) { log_softmax_grad<double>(arguments); }
RINGWISE_KERNEL(nll_float, NllArguments) { nll<float>(arguments); }
RINGWISE_KERNEL(nll_double, NllArguments) { nll<double>(arguments); }
RINGWISE_KERNEL(nll_grad_float, NllArguments) { nll_grad<float>(arguments); }
RINGWISE_KERNEL(nll_grad_double, NllArguments) { nll_grad<double>(arguments); }

}  // namespace ringwise::tensor::cuda
