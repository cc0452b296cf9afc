// Group normalisation: a block computes a group of one sample. Its first pass reads memory, later ones read the L2
// cache.
#include "tensor/cuda/kernels/shared/element.cuh"

namespace ringwise::tensor::cuda {

struct Add {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return a + b;
  }
};

/// Calls body(i) for the elements of a row that this thread has, with four loads in flight.
template <class Body>
__device__ inline void for_each_of_row(int64_t size, Body body) {
#pragma unroll 4
  for (int64_t i = threadIdx.x; i < size; i += blockDim.x) body(i);
}

/// Calls body(element, channel) for the elements of a row that this thread has. Only the first element is divided by
/// `inner`; from one element to the next, a thread moves on by the same channels and the same rest. These passes read
/// the cache.
template <class Body>
__device__ inline void for_each_of_channels(int64_t size, int64_t inner, Body body) {
  // A divisor that is greater than all that it divides has the quotient 0, too.
  const auto divisor = static_cast<uint32_t>(inner <= kThreads ? inner : kThreads + 1);
  int64_t channel = threadIdx.x / divisor, place = threadIdx.x % divisor;
  const uint32_t channels = blockDim.x / divisor, places = blockDim.x % divisor;
#pragma unroll 1
  for (int64_t i = threadIdx.x; i < size; i += blockDim.x) {
    body(i, channel);
    channel += channels;
    place += places;
    if (place < inner) continue;
    place -= inner;
    channel++;
  }
}

/// Calls body(row, first channel of its group): blocks share samples in x, and groups in y.
template <class Arguments, class Body>
__device__ inline void for_each_group(const Arguments& x, Body body) {
#pragma unroll 1
  for (int64_t sample = blockIdx.x; sample < x.batch; sample += gridDim.x) {
#pragma unroll 1
    for (int64_t group = blockIdx.y; group < x.groups; group += gridDim.y)
      body(sample * x.groups + group, group * x.channels);
  }
}

template <class T>
__device__ void group_norm(const GroupNormArguments& x) {
  __shared__ T shared[kThreads / kWarp];
  const T *gamma = static_cast<const T*>(x.gamma), *beta = static_cast<const T*>(x.beta);
  const int64_t size = x.channels * x.inner;
  const T share = static_cast<T>(x.share);
  for_each_group(x, [&](int64_t r, int64_t first) {
    const T* a = static_cast<const T*>(x.a) + r * size;
    T* out = static_cast<T*>(x.out) + r * size;
    T total = 0, squares = 0;
    for_each_of_row(size, [&](int64_t i) { total += a[i]; });
    const T mean = over_block(total, shared, Add{}) * share;
    for_each_of_row(size, [&](int64_t i) { squares += (a[i] - mean) * (a[i] - mean); });
    const T rstd = T(1) / sqrt(over_block(squares, shared, Add{}) * share + static_cast<T>(x.eps));
    for_each_of_channels(size, x.inner, [&](int64_t i, int64_t c) {
      const T scale = gamma ? rstd * gamma[first + c] : rstd;
      out[i] = (a[i] - mean) * scale + (beta ? beta[first + c] : T(0));
    });
    if (threadIdx.x != 0) return;
    static_cast<T*>(x.mean)[r] = mean;
    static_cast<T*>(x.rstd)[r] = rstd;
  });
}

/// A warp sums a channel.
template <class T>
__device__ void group_norm_grad(const GroupNormGradArguments& x) {
  __shared__ T shared[kThreads / kWarp];
  const T* gamma = static_cast<const T*>(x.gamma);
  const int64_t size = x.channels * x.inner;
  const int lane = static_cast<int>(threadIdx.x) % kWarp, warp = static_cast<int>(threadIdx.x) / kWarp;
  const int warps = static_cast<int>(blockDim.x) / kWarp;
  for_each_group(x, [&](int64_t r, int64_t first) {
    const T *grad = static_cast<const T*>(x.grad_out) + r * size, *a = static_cast<const T*>(x.a) + r * size;
    const T mean = static_cast<const T*>(x.mean)[r], rstd = static_cast<const T*>(x.rstd)[r];
    T sum = 0, product = 0;
#pragma unroll 1
    for (int64_t c = warp; c < x.channels; c += warps) {
      T grads = 0, products = 0;
#pragma unroll 4
      for (int64_t i = c * x.inner + lane; i < (c + 1) * x.inner; i += kWarp) {
        grads += grad[i];
        products += grad[i] * (a[i] - mean);
      }
      grads = over_warp(grads, Add{});
      products = over_warp(products, Add{}) * rstd;
      if (lane != 0) continue;
      T* to = static_cast<T*>(x.sums) + r * x.channels + c;
      to[0] = grads;
      to[x.batch * x.groups * x.channels] = products;
      const T scale = gamma ? gamma[first + c] : T(1);
      sum += grads * scale;
      product += products * scale;
    }
    if (!x.grad_in) return;
    const T factor = static_cast<T>(x.share) * rstd;
    const T average = over_block(sum, shared, Add{}) * factor;
    const T slope = over_block(product, shared, Add{}) * factor * rstd;
    T* to = static_cast<T*>(x.grad_in) + r * size;
    for_each_of_channels(size, x.inner, [&](int64_t i, int64_t c) {
      const T scale = gamma ? rstd * gamma[first + c] : rstd;
      const T value = grad[i] * scale - average - (a[i] - mean) * slope;
      to[i] = x.accumulate ? to[i] + value : value;
    });
  });
}

RINGWISE_BLOCK_KERNEL(group_norm_float, GroupNormArguments) { group_norm<float>(arguments); }
RINGWISE_BLOCK_KERNEL(group_norm_double, GroupNormArguments) { group_norm<double>(arguments); }
RINGWISE_BLOCK_KERNEL(group_norm_grad_float, GroupNormGradArguments) { group_norm_grad<float>(arguments); }
RINGWISE_BLOCK_KERNEL(group_norm_grad_double, GroupNormGradArguments) { group_norm_grad<double>(arguments); }

}  // namespace ringwise::tensor::cuda
