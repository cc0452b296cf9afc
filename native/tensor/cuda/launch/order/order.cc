// Lookups, writes to indexed elements, triangles: the host's side of order.cu.
#include <algorithm>
#include <cmath>

#include "tensor/cuda/launch/kernels.h"
#include "tensor/cuda/launch/launch.h"
#include "tensor/cuda/launch/order/sort.h"

namespace ringwise::tensor::cuda {

namespace {

/// Returns the arguments of a Lookup or a Scatter.
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
          0,
          0};
}

/// Returns the number of entries that one thread combines. It does not depend on the device, so sums have the same bits
/// on every device.
int64_t piece_of(int64_t count, int64_t columns) {
  constexpr int64_t kLeast = 16, kManyColumns = 1 << 17;
  if (columns >= kManyColumns) return count;
  // With n equal indices, a thread combines the entries of a piece, then one thread n / piece results: √n steps each.
  return std::max(kLeast, static_cast<int64_t>(std::sqrt(static_cast<double>(count))));
}

}  // namespace

void lookup(const Lookup& x) { launch_over(x.outer * x.count * x.inner, KernelId::lookup, lookup_arguments(x)); }

void scatter(const Scatter& x) {
  constexpr int64_t kFew = 8;  // most indices for which one thread writes all elements of a column, in order
  LookupArguments lookup = lookup_arguments(x);
  lookup.op = static_cast<int32_t>(x.op);
  const int64_t columns = lookup.outer * lookup.inner;
  if (columns == 0 || x.count == 0) return;
  if (lookup.count <= kFew || lookup.size == 0)
    return launch_over(static_cast<size_t>(columns), KernelId::scatter_few, lookup);
  const bool is_narrow = x.size <= UINT32_MAX && x.count <= UINT32_MAX;
  const int64_t lists = x.per_element ? columns : 1;
  const Scratch entries(static_cast<size_t>(lists * lookup.count) * entry_bytes(is_narrow));
  SortArguments order{};
  order.a = x.index;
  order.to = entries.data();
  order.fault = lookup.fault;
  order.rows = lists;
  order.cols = lookup.count;
  order.inner = x.per_element ? lookup.inner : 1;
  order.limit = lookup.size;
  order.dtype = static_cast<int32_t>(DType::Int64);
  sort_rows(order, lookup.count, is_narrow);
  ScatterArguments runs{};
  runs.lookup = lookup;
  runs.entries = entries.data();
  runs.is_narrow = is_narrow;
  runs.piece = piece_of(lookup.count, columns);
  runs.pieces = (lookup.count + runs.piece - 1) / runs.piece;
  const auto threads = static_cast<size_t>(runs.pieces * columns);
  const Scratch partial(runs.pieces > 1 ? 2 * threads * sizeof(double) : 1);
  runs.partial = partial.data();
  launch_over(threads, KernelId::scatter_runs, runs);
  launch_over(threads - static_cast<size_t>(columns), KernelId::scatter_join, runs);
}

void triangle(const Triangle& x) { launch_over(x.batch * x.rows * x.cols, KernelId::triangle, x); }

}  // namespace ringwise::tensor::cuda
