// Log-softmax, its gradient and the negative log-likelihood. A block has one row; a row is read again for each pass,
// from the cache where it fits.
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

/// The label of a row, or -1 and a note for the host where it lies outside.
__device__ inline int64_t label_of(const NllArguments& x, int64_t row) {
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

RINGWISE_BLOCK_KERNEL(log_softmax_float, SoftmaxArguments) { log_softmax<float>(arguments); }
RINGWISE_BLOCK_KERNEL(log_softmax_double, SoftmaxArguments) { log_softmax<double>(arguments); }
RINGWISE_BLOCK_KERNEL(log_softmax_grad_float, SoftmaxArguments) { log_softmax_grad<float>(arguments); }
RINGWISE_BLOCK_KERNEL(log_softmax_grad_double, SoftmaxArguments) { log_softmax_grad<double>(arguments); }
RINGWISE_KERNEL(nll_float, NllArguments) { nll<float>(arguments); }
RINGWISE_KERNEL(nll_double, NllArguments) { nll<double>(arguments); }
RINGWISE_KERNEL(nll_grad_float, NllArguments) { nll_grad<float>(arguments); }
RINGWISE_KERNEL(nll_grad_double, NllArguments) { nll_grad<double>(arguments); }

}  // namespace ringwise::tensor::cuda
