// Running sums along the middle of [outer, size, inner]. A block sums `lanes` neighbouring columns; its threads share
// the positions along `size`, tile by tile. A tile passes through shared memory, so that global memory is read and
// written in its own order while each thread sums consecutive positions.
#include "tensor/cuda/kernels/shared/functions.cuh"

namespace ringwise::tensor::cuda {

constexpr int kRun = kScanTile / kThreads;  // consecutive positions of a thread

/// Returns the place of an element of a tile. One unused place after 32 elements keeps runs of threads on different
/// banks of shared memory.
__device__ inline int place_of(int i) { return i + i / kWarp; }

/// Distributes the elements (lane, position) of a tile over the threads in the order of global memory, kRun to each.
struct TileOrder {
  const ScanArguments& x;
  int64_t column, column_begin;  // the block's first column; the offset of this thread's column, unless inner is 1
  int lane_bits;

  __device__ explicit TileOrder(const ScanArguments& arguments) : x(arguments) {
    lane_bits = x.lane_bits;
    column = static_cast<int64_t>(blockIdx.x) << lane_bits;
    const int64_t own = column + (threadIdx.x & ((1u << lane_bits) - 1)), o = own / x.inner;
    column_begin = o * x.size * x.inner + (own - o * x.inner);
  }
  /// Calls body(k, place in shared memory, offset in global memory, whether the element exists) for the k-th element of
  /// this thread.
  template <class Body>
  __device__ void each(int64_t begin, int64_t end, Body body) const {
    const int lanes = 1 << lane_bits, positions = kScanTile >> lane_bits;
#pragma unroll
    for (int k = 0; k < kRun; k++) {
      const int e = k * kThreads + static_cast<int>(threadIdx.x);
      const int lane = x.inner == 1 ? e / positions : e & (lanes - 1);
      const int position = x.inner == 1 ? e & (positions - 1) : e >> lane_bits;
      const int64_t at = begin + position, s = x.reverse ? x.size - 1 - at : at;
      const int64_t offset = x.inner == 1 ? (column + lane) * x.size + s : column_begin + s * x.inner;
      body(k, place_of((position << lane_bits) + lane), offset, column + lane < x.columns && at < end);
    }
  }
};

/// Totals of floats are double; those of integers wrap around. Without an output, writes only the totals of the chunk.
template <class C>
__device__ void cumsum(const ScanArguments& x) {
  using Total = std::conditional_t<std::is_same_v<C, int64_t>, uint64_t, double>;
  __shared__ C tile[kScanTile + kScanTile / kWarp];
  __shared__ Total totals[kThreads];  // [groups, lanes]
  const TileOrder order(x);
  const int thread = static_cast<int>(threadIdx.x), lanes = 1 << x.lane_bits;
  const int lane = thread & (lanes - 1), part = thread >> x.lane_bits;
  // The threads of a group share their totals by shuffles: a warp, or all threads of a part if it has more lanes.
  const int group_threads = lanes > kWarp ? lanes : kWarp, groups = kThreads / group_threads;
  const int group = thread / group_threads;
  const int64_t column = order.column + lane, o = column / x.inner, chunk = blockIdx.y;
  Total* const chunk_total = static_cast<Total*>(x.totals) + (o * x.chunks + chunk) * x.inner + (column - o * x.inner);
  const bool is_inside = column < x.columns;
  Total carry = x.out && chunk > 0 && is_inside ? *(chunk_total - x.inner) : Total(0);
  const int64_t first = chunk * x.chunk, end = first + x.chunk < x.size ? first + x.chunk : x.size;
  for (int64_t begin = first; begin < end; begin += kScanTile >> x.lane_bits) {
    with_type_of<C>(x.dtype, [&](auto type) {
      const auto* a = static_cast<const decltype(type)*>(x.a);
      C loaded[kRun];
      order.each(begin, end,
                 [&](int k, int, int64_t at, bool exists) { loaded[k] = exists ? read_as<C>(a[at]) : C(0); });
      order.each(begin, end, [&](int k, int place, int64_t, bool) { tile[place] = loaded[k]; });
    });
    __syncthreads();
    Total own = 0;
#pragma unroll
    for (int k = 0; k < kRun; k++) own += static_cast<Total>(tile[place_of((part * kRun + k) * lanes + lane)]);
    Total before = 0, all = own;  // of the group: the sum before this thread, and the whole sum
    for (int mask = lanes; mask < kWarp; mask *= 2) {
      const Total other = __shfl_xor_sync(0xffffffffu, all, mask);
      if (thread & mask) before += other;
      all += other;
    }
    if (thread % group_threads < lanes) totals[group * lanes + lane] = all;
    __syncthreads();
    Total total = carry;
    for (int g = 0; g < groups; g++) {
      const Total of_group = totals[g * lanes + lane];
      if (g < group) total += of_group;
      carry += of_group;
    }
    total += before;
#pragma unroll
    for (int k = 0; k < kRun; k++) {
      C& element = tile[place_of((part * kRun + k) * lanes + lane)];
      total += static_cast<Total>(element);
      element = static_cast<C>(total);
    }
    __syncthreads();
    if (!x.out) continue;
    // Each thread stores, and loads in the next round, the same places, so no barrier is needed in between.
    with_type_of<C>(x.dtype, [&](auto type) {
      using E = decltype(type);
      order.each(begin, end, [&](int, int place, int64_t at, bool exists) {
        if (exists) static_cast<E*>(x.out)[at] = write_as<E>(tile[place]);
      });
    });
  }
  if (!x.out && part == 0 && is_inside) *chunk_total = carry;
}

RINGWISE_BLOCK_KERNEL(cumsum_float, ScanArguments) { cumsum<float>(arguments); }
RINGWISE_BLOCK_KERNEL(cumsum_double, ScanArguments) { cumsum<double>(arguments); }
RINGWISE_BLOCK_KERNEL(cumsum_long, ScanArguments) { cumsum<int64_t>(arguments); }

}  // namespace ringwise::tensor::cuda
