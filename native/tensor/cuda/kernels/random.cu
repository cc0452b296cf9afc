// Random numbers and dropout. Each thread computes one output of Philox (four 32-bit words) at a time, and the elements
// made from it, so threads are independent of each other.
#include "tensor/cuda/kernels/shared/philox.cuh"

namespace ringwise::tensor::cuda {

#ifdef __CUDACC__
// The product and the sum are rounded separately (no fused multiply-add), so that CPU and CUDA give the same bits.
__device__ inline double scaled(double x, double scale, double low) { return __dadd_rn(low, __dmul_rn(x, scale)); }
#else
inline double scaled(double x, double scale, double low) {
  const double product = x * scale;
  return low + product;
}
#endif

constexpr double kUnit24 = 1.0 / (1 << 24);

/// Calls body(words, first element, number of elements) for each output of Philox, which makes `per_output` elements.
template <class Body>
__device__ inline void for_each_philox(const RandomArguments& x, int per_output, Body body) {
  const Position at = position_of(x.stream);
  for_each_of_grid((x.count + per_output - 1) / per_output, [&](int64_t index) {
    const int64_t begin = index * per_output, left = x.count - begin;
    body(philox(at.seed, at.offset + static_cast<uint64_t>(index)), begin,
         static_cast<int>(left < per_output ? left : per_output));
  });
}

RINGWISE_KERNEL(random_uniform, RandomArguments) {
  const double scale = (arguments.high - arguments.low) * kUnit24;
  for_each_philox(arguments, 4, [&](const Words& words, int64_t begin, int n) {
    float values[4];
#pragma unroll
    for (int i = 0; i < 4; i++) values[i] = static_cast<float>(scaled(words.at[i] >> 8, scale, arguments.low));
    write_four(static_cast<float*>(arguments.out) + begin, values, n, arguments.use_packs != 0);
  });
}

/// Makes two normal numbers from two words by the method of Box and Muller, in float64.
RINGWISE_KERNEL(random_normal, RandomArguments) {
  for_each_philox(arguments, 4, [&](const Words& words, int64_t begin, int n) {
    float values[4];
#pragma unroll
    for (int i = 0; i < 4; i += 2) {
      const double radius = sqrt(-2 * log(((words.at[i] >> 8) + 1) * kUnit24));
      const double angle = 2 * 3.14159265358979323846 * (words.at[i + 1] >> 8) * kUnit24;
      values[i] = static_cast<float>(radius * cos(angle));
      values[i + 1] = static_cast<float>(radius * sin(angle));
    }
    write_four(static_cast<float*>(arguments.out) + begin, values, n, arguments.use_packs != 0);
  });
}

RINGWISE_KERNEL(random_integers, RandomArguments) {
  const auto low = static_cast<int64_t>(arguments.low);
  const auto range = static_cast<uint64_t>(arguments.high - arguments.low);
  for_each_philox(arguments, 4, [&](const Words& words, int64_t begin, int n) {
    int64_t values[4];
#pragma unroll
    for (int i = 0; i < 4; i++) values[i] = low + static_cast<int64_t>((words.at[i] * range) >> 32);
    write_four(static_cast<int64_t*>(arguments.out) + begin, values, n, arguments.use_packs != 0);
  });
}

/// Writes int64 in [0, 2^63), each from two words without the lowest bit.
RINGWISE_KERNEL(random_bits, RandomArguments) {
  for_each_philox(arguments, 2, [&](const Words& words, int64_t begin, int n) {
#pragma unroll
    for (int i = 0; i < 2; i++) {
      const uint64_t bits = uint64_t{words.at[2 * i + 1]} << 32 | words.at[2 * i];
      if (i < n) static_cast<int64_t*>(arguments.out)[begin + i] = static_cast<int64_t>(bits >> 1);
    }
  });
}

template <class E, class T>
__device__ void dropout(const RandomArguments& x) {
  const T scale = static_cast<T>(x.scale);
  const bool use_packs = x.use_packs != 0;
  for_each_philox(x, 4, [&](const Words& words, int64_t begin, int n) {
    T values[4];
    read_four(values, static_cast<const E*>(x.a) + begin, n, use_packs);
#pragma unroll
    for (int i = 0; i < 4; i++) values[i] = words.at[i] < x.limit ? T(0) : values[i] * scale;
    write_four(static_cast<E*>(x.out) + begin, values, n, use_packs);
  });
}

RINGWISE_KERNEL(dropout_float, RandomArguments) { dropout<float, float>(arguments); }
RINGWISE_KERNEL(dropout_double, RandomArguments) { dropout<double, double>(arguments); }
RINGWISE_KERNEL(dropout_half, RandomArguments) { dropout<Half, float>(arguments); }
RINGWISE_KERNEL(dropout_bfloat, RandomArguments) { dropout<BFloat, float>(arguments); }

}  // namespace ringwise::tensor::cuda
