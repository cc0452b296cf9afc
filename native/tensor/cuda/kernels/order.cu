// Lookups by index, sums into indexed elements, triangles.
#include "tensor/cuda/kernels/functions.cuh"

namespace ringwise::tensor::cuda {

/// Calls use(value of the computing type of a dtype).
template <class Use>
__device__ inline void with_compute(int dtype, Use use) {
  switch (static_cast<DType>(dtype)) {
    case DType::Float64: return use(double{});
    case DType::Float32:
    case DType::Float16:
    case DType::BFloat16: return use(float{});
    default: return use(int64_t{});
  }
}

__device__ inline bool is_inside(const LookupArguments& x, int64_t index) {
  if (index >= 0 && index < x.size) return true;
  *x.fault = kLookupFault;
  return false;
}

RINGWISE_KERNEL(lookup, LookupArguments) {
  const LookupArguments& x = arguments;
  for_each_of_grid(x.outer * x.count * x.inner, [&](int64_t to) {
    const int64_t row = to / x.inner, i = to - row * x.inner, o = row / x.count, j = row - o * x.count;
    const int64_t index = x.index[x.per_element ? to : j];
    if (!is_inside(x, index)) return;
    const int64_t from = (o * x.size + index) * x.inner + i;
    with_type(x.dtype, [&](auto type) {
      using E = decltype(type);
      static_cast<E*>(x.out)[to] = static_cast<const E*>(x.a)[from];
    });
  });
}

/// Each thread reads one column [outer, ·, inner] in order and adds the elements for its share of the targets. So no
/// two threads write the same element, and sums are the same every time.
RINGWISE_KERNEL(scatter_add, LookupArguments) {
  const LookupArguments& x = arguments;
  for_each_of_grid(x.outer * x.inner * x.slices, [&](int64_t thread) {
    const int64_t share = thread / x.inner, i = thread - share * x.inner;
    const int64_t o = share / x.slices, slice = share - o * x.slices;
    for (int64_t j = 0; j < x.count; j++) {
      const int64_t from = (o * x.count + j) * x.inner + i;
      const int64_t index = x.index[x.per_element ? from : j];
      if (!is_inside(x, index) || index % x.slices != slice) continue;
      const int64_t to = (o * x.size + index) * x.inner + i;
      with_type(x.dtype, [&](auto type) {
        using E = decltype(type);
        E& total = static_cast<E*>(x.out)[to];
        const E value = static_cast<const E*>(x.a)[from];
        with_compute(x.dtype, [&](auto compute) {
          using C = decltype(compute);
          total = write_as<E>(static_cast<C>(wrap(read_as<C>(total)) + wrap(read_as<C>(value))));
        });
      });
    }
  });
}

template <class E>
__device__ void triangle_of(const Triangle& x) {
  const auto rows = static_cast<int64_t>(x.rows), cols = static_cast<int64_t>(x.cols);
  for_each_of_grid(static_cast<int64_t>(x.batch) * rows * cols, [&](int64_t i) {
    const int64_t row = i / cols, distance = i - row * cols - row % rows;
    const bool is_kept = x.upper ? distance >= x.diagonal : distance <= x.diagonal;
    static_cast<E*>(x.out)[i] = is_kept ? static_cast<const E*>(x.a)[i] : E(0);
  });
}

RINGWISE_KERNEL(triangle, Triangle) {
  switch (arguments.dtype) {
    case DType::Float64:
    case DType::Int64: return triangle_of<uint64_t>(arguments);
    case DType::Float32:
    case DType::Int32: return triangle_of<uint32_t>(arguments);
    case DType::Float16:
    case DType::BFloat16: return triangle_of<uint16_t>(arguments);
    default: return triangle_of<uint8_t>(arguments);
  }
}

}  // namespace ringwise::tensor::cuda
