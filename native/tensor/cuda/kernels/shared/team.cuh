// How the threads of a block share outputs that are reduced, and loads of several elements at once.
#pragma once

#include "tensor/cuda/kernels/shared/element.cuh"

namespace ringwise::tensor::cuda {

__extension__ using Wide = unsigned __int128;

/// Returns the offset of unit `j` of the reduced dimensions, in bytes.
__device__ inline int64_t reduced_offset(const ReducedDimension* dimensions, int rank, int64_t j) {
  auto rest = static_cast<uint64_t>(j);
  int64_t offset = 0;
#pragma unroll 1
  for (int d = rank - 1; d > 0; d--) {
    const ReducedDimension& dimension = dimensions[d];
    const auto high = static_cast<uint64_t>((static_cast<Wide>(rest) * dimension.factor) >> 64);
    const uint64_t quotient = (high + rest) >> dimension.shift;
    offset += static_cast<int64_t>(rest - quotient * dimension.size) * dimension.in;
    rest = quotient;
  }
  return offset + static_cast<int64_t>(rest) * dimensions[0].in;
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

/// Adds two totals per output over the threads of a block: `totals` are the first ones of kPack neighbouring outputs,
/// then their second ones. Calls write(output, first, second) for each output below `count`.
template <int kPack, class T, class Write>
__device__ inline void add_pairs(const Team& team, int64_t count, T* totals, T* shared, Write write) {
  const auto add = [](T a, T b) { return a + b; };
  join_in_warp<2 * kPack>(team, totals, shared, add);
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < team.lanes * kPack; i += kThreads) {
    const int lane = i / kPack, k = i % kPack, at = lane * 2 * kPack + k;
    const int64_t output = (static_cast<int64_t>(blockIdx.x) * team.lanes + lane) * kPack + k;
    if (output < count)
      write(output, joined(team, shared, 2 * kPack, at, add), joined(team, shared, 2 * kPack, at + kPack, add));
  }
}

/// Adds up the chunks of pairs of totals, [chunks, 2, count], for kWarp outputs per block, and calls write like
/// add_pairs(). `shared` has room for 2 · kThreads.
template <class T, class Write>
__device__ inline void add_chunks(const T* partial, int64_t chunks, int64_t count, T* shared, Write write) {
  const Team team(kWarp, true);
  const int64_t output = static_cast<int64_t>(blockIdx.x) * kWarp + team.lane;
  T totals[2] = {};
#pragma unroll 4
  for (int64_t c = team.way; c < chunks && output < count; c += team.ways) {
    totals[0] += partial[2 * c * count + output];
    totals[1] += partial[(2 * c + 1) * count + output];
  }
  add_pairs<1>(team, count, totals, shared, write);
}

}  // namespace ringwise::tensor::cuda
