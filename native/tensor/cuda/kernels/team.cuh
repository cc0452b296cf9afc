// How the threads of a block share outputs that are reduced, and loads of several elements at once.
#pragma once

#include <bit>

#include "tensor/cuda/kernels/element.cuh"

namespace ringwise::tensor::cuda {

/// N elements that are loaded by one instruction.
template <class E, int N>
struct Elements {
  E at[N];
};
/// `from` must be aligned for all N elements together.
template <class E, int N>
__device__ inline Elements<E, N> load_elements(const void* from) {
  if constexpr (N == 1) {
    return {*static_cast<const E*>(from)};
  } else {
    // nvcc loads 16 bytes at once only as a struct of 32-bit words. It loads eight members of 16 bits in two halves.
    struct alignas(N * sizeof(E)) Words {
      uint32_t at[N * sizeof(E) / 4];
    };
    return std::bit_cast<Elements<E, N>>(*static_cast<const Words*>(from));
  }
}

/// A block of kThreads has `lanes` outputs, or packs of outputs; `ways` threads share each. Neighbouring threads have
/// neighbouring outputs (is_column), or neighbouring ways. Both numbers are powers of two.
struct Team {
  int lanes, ways;
  int lane, way;  // of this thread
  int in_warp;    // ways of an output that are in one warp
  int stride;     // from the thread of one way to that of the next, in a warp

  __device__ Team(int lanes, bool is_column) : lanes(lanes), ways(kThreads / lanes) {
    const int thread = static_cast<int>(threadIdx.x);
    lane = is_column ? thread % lanes : thread / ways;
    way = is_column ? thread / lanes : thread % ways;
    in_warp = is_column ? (lanes < kWarp ? kWarp / lanes : 1) : (ways < kWarp ? ways : kWarp);
    stride = is_column ? lanes : 1;
  }
};

template <class T>
__device__ inline T exchanged(T value, int lane_mask) {
  return __shfl_xor_sync(0xffffffffu, value, lane_mask);
}

/// Joins the totals of the threads of a warp that share an output, kTotals each, and writes one set of totals for each
/// warp to `shared`, which has room for kThreads · kTotals. After a barrier, joined() returns the totals of the block.
template <int kTotals, class Total, class Join>
__device__ inline void join_in_warp(const Team& team, Total* totals, Total* shared, Join join) {
  for (int way = 1; way < team.in_warp; way *= 2) {
#pragma unroll
    for (int k = 0; k < kTotals; k++) totals[k] = join(totals[k], exchanged(totals[k], way * team.stride));
  }
  if (team.way % team.in_warp != 0) return;
#pragma unroll
  for (int k = 0; k < kTotals; k++)
    shared[(team.way / team.in_warp * team.lanes + team.lane) * kTotals + k] = totals[k];
}
/// Returns total i of the block: total i % totals of lane i / totals.
template <class Total, class Join>
__device__ inline Total joined(const Team& team, const Total* shared, int totals, int i, Join join) {
  Total total = shared[i];
  const int parts = team.ways / team.in_warp;
  for (int part = 1; part < parts; part++) total = join(total, shared[part * team.lanes * totals + i]);
  return total;
}

}  // namespace ringwise::tensor::cuda
