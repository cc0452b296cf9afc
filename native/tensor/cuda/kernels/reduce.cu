// Reductions over any dimensions of any strides. A block works on `lanes` neighbouring outputs; its other threads share
// the elements of each. Float sums and products are taken in double. Long reductions are cut into chunks, one block
// each, whose results are reduced by a second launch. The order depends on shape and strides alone.
#include "tensor/cuda/kernels/element.cuh"

namespace ringwise::tensor::cuda {

template <class T>
using SumOf = std::conditional_t<std::is_same_v<T, int64_t>, uint64_t, double>;

template <class T>
struct Sum {
  using Total = SumOf<T>;
  static __device__ Total start() { return 0; }
  static __device__ Total of(T value, int64_t) { return static_cast<Total>(value); }
  static __device__ Total join(Total a, Total b) { return a + b; }
};
template <class T>
struct Prod {
  using Total = SumOf<T>;
  static __device__ Total start() { return 1; }
  static __device__ Total of(T value, int64_t) { return static_cast<Total>(value); }
  static __device__ Total join(Total a, Total b) { return a * b; }
};
template <class T, bool kIsMax>
struct Extreme {
  using Total = T;
  static __device__ T start() {
    using Limits = std::numeric_limits<T>;
    if constexpr (Limits::has_infinity)
      return kIsMax ? -Limits::infinity() : Limits::infinity();
    else
      return kIsMax ? Limits::min() : Limits::max();
  }
  static __device__ T of(T value, int64_t) { return value; }
  static __device__ T join(T best, T value) {
    return ((kIsMax ? value > best : value < best) | (value != value)) ? value : best;
  }
};
template <class T>
struct Found {
  T value;
  int64_t at;  // -1: nothing yet
};
/// Finds the first of the most extreme elements; NaN is the most extreme.
template <class T, bool kIsMax>
struct ArgExtreme {
  using Total = Found<T>;
  static __device__ Total start() { return {T{}, -1}; }
  static __device__ Total of(T value, int64_t at) { return {value, at}; }
  static __device__ Total join(Total a, Total b) {
    if (a.at < 0 || b.at < 0) return a.at < 0 ? b : a;
    const bool a_is_nan = a.value != a.value, b_is_nan = b.value != b.value;
    const bool b_is_better = (kIsMax ? b.value > a.value : b.value < a.value) | (b_is_nan & !a_is_nan);
    const bool a_is_better = (kIsMax ? a.value > b.value : a.value < b.value) | (a_is_nan & !b_is_nan);
    return b_is_better || (!a_is_better && b.at < a.at) ? b : a;
  }
};

template <class Op>
__device__ typename Op::Total block_total(const ReduceArguments& x, int64_t base, int way, int ways, int64_t begin,
                                          int64_t end, bool is_used, auto read) {
  auto total = Op::start();
  if (is_used) {
    for (int64_t j = begin + way; j < end; j += ways) {
      int64_t offset = base;
      for_each_dimension(j, x.reduced_rank, x.reduced_shape,
                         [&](int d, int64_t index) { offset += index * x.reduced_in[d]; });
      total = Op::join(total, Op::of(read(offset), j));
    }
  }
  return total;
}

template <class T, class Op, class Finish>
__device__ void reduce_with(const ReduceArguments& x, Finish finish) {
  using Total = typename Op::Total;
  __shared__ Total shared[kThreads];
  const int lanes = x.lanes, ways = kThreads / lanes;
  const int thread = static_cast<int>(threadIdx.x), lane = thread % lanes, way = thread / lanes;
  const int64_t output = static_cast<int64_t>(blockIdx.x) * lanes + lane;
  const bool is_used = output < x.kept_count;
  int64_t from = 0, to = 0;
  if (is_used) {
    for_each_dimension(output, x.kept_rank, x.kept_shape, [&](int d, int64_t index) {
      from += index * x.kept_in[d];
      to += index * x.kept_out[d];
    });
  }
  const int64_t begin = static_cast<int64_t>(blockIdx.y) * x.chunk;
  const int64_t end = begin + x.chunk < x.reduced_count ? begin + x.chunk : x.reduced_count;
  shared[thread] = block_total<Op>(x, from, way, ways, begin, end, is_used,
                                   [&](int64_t offset) { return load<T>(x.in_dtype, x.in, offset); });
  __syncthreads();
  for (int half = ways / 2; half > 0; half /= 2) {
    if (way < half) shared[thread] = Op::join(shared[thread], shared[thread + half * lanes]);
    __syncthreads();
  }
  if (is_used && way == 0) finish(to + static_cast<int64_t>(blockIdx.y) * x.chunk_stride, shared[thread]);
}

template <class T, class Op>
__device__ void reduce(const ReduceArguments& x) {
  using Total = typename Op::Total;
  reduce_with<T, Op>(x, [&](int64_t to, Total total) {
    if (x.has_divisor) total = total / static_cast<Total>(x.divisor);
    // Totals of chunks keep their type; results are converted to the computing type, then to the stored dtype.
    if constexpr (std::is_same_v<Total, double>) {
      if (x.out_dtype == static_cast<int>(DType::Float64)) return store<double>(x.out_dtype, x.out, to, total);
    }
    store<T>(x.out_dtype, x.out, to, static_cast<T>(total));
  });
}

template <class T, bool kIsMax>
__device__ void arg_reduce(const ReduceArguments& x) {
  reduce_with<T, ArgExtreme<T, kIsMax>>(
      x, [&](int64_t to, Found<T> found) { *reinterpret_cast<int64_t*>(static_cast<char*>(x.out) + to) = found.at; });
}

#define RINGWISE_REDUCTIONS(name, T)                                                                     \
  RINGWISE_BLOCK_KERNEL(reduce_sum_##name, ReduceArguments) { reduce<T, Sum<T>>(arguments); }            \
  RINGWISE_BLOCK_KERNEL(reduce_prod_##name, ReduceArguments) { reduce<T, Prod<T>>(arguments); }          \
  RINGWISE_BLOCK_KERNEL(reduce_max_##name, ReduceArguments) { reduce<T, Extreme<T, true>>(arguments); }  \
  RINGWISE_BLOCK_KERNEL(reduce_min_##name, ReduceArguments) { reduce<T, Extreme<T, false>>(arguments); } \
  RINGWISE_BLOCK_KERNEL(arg_max_##name, ReduceArguments) { arg_reduce<T, true>(arguments); }             \
  RINGWISE_BLOCK_KERNEL(arg_min_##name, ReduceArguments) { arg_reduce<T, false>(arguments); }
RINGWISE_REDUCTIONS(float, float)
RINGWISE_REDUCTIONS(double, double)
RINGWISE_REDUCTIONS(long, int64_t)

}  // namespace ringwise::tensor::cuda
