// Lookups, sums into indices, triangles: the host's side of kernels/order.cu.
#include <algorithm>

#include "tensor/cuda/launch/kernels.h"
#include "tensor/cuda/launch/launch.h"

namespace ringwise::tensor::cuda {

namespace {

/// Returns the arguments of a Lookup or a ScatterAdd.
template <class X>
LookupArguments lookup_arguments(const X& x) {
  return {x.out,
          x.a,
          x.index,
          current_device().fault(),
          static_cast<int64_t>(x.outer),
          static_cast<int64_t>(x.count),
          static_cast<int64_t>(x.size),
          static_cast<int64_t>(x.inner),
          static_cast<int32_t>(x.dtype),
          x.per_element,
          1,
          0};
}

}  // namespace

void lookup(const Lookup& x) { launch_over(x.outer * x.count * x.inner, KernelId::lookup, lookup_arguments(x)); }

void scatter_add(const ScatterAdd& x) {
  const size_t columns = x.outer * x.inner;
  if (columns == 0 || x.count == 0) return;
  LookupArguments arguments = lookup_arguments(x);
  // Enough shares to keep the device busy. A thread of each share reads all indices.
  const size_t threads = static_cast<size_t>(current_device().multiprocessors()) * 1024;
  arguments.slices = static_cast<int32_t>(std::clamp<size_t>(threads / columns, 1, std::clamp<size_t>(x.size, 1, 64)));
  launch_over(columns * static_cast<size_t>(arguments.slices), KernelId::scatter_add, arguments);
}

void triangle(const Triangle& x) { launch_over(x.batch * x.rows * x.cols, KernelId::triangle, x); }

}  // namespace ringwise::tensor::cuda
