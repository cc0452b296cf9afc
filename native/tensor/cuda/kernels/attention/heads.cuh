// What all attention kernels share: the head and the tile of a block, rows of heads, and the product that the gradient
// subtracts from each slope.
#pragma once

#include "tensor/cuda/kernels/shared/functions.cuh"
#include "tensor/cuda/kernels/shared/philox.cuh"
#include "tensor/cuda/kernels/shared/tile.cuh"

namespace ringwise::tensor::cuda {

/// The head and the tile of a block. The last tiles come first if `is_last_first`: with a causal mask, the last queries
/// have most work.
struct TilePosition {
  int64_t b, h, head, tile;
};
__device__ inline TilePosition tile_position_of(const AttentionArguments& x, bool is_last_first) {
  const int64_t head = blockIdx.x / x.tiles, tile = blockIdx.x - head * x.tiles;
  return {head / x.heads, head % x.heads, head, is_last_first ? x.tiles - 1 - tile : tile};
}

template <class E>
__device__ inline Rows<E> rows_of(const HeadArguments& x, int64_t b, int64_t h, int64_t count, int64_t width) {
  return {static_cast<E*>(x.data) + b * x.batch + h * x.head, x.row, count, width};
}

/// Returns the number of a query in `values` (lse or dots), or `outside` behind the last query. There, an lse of ∞
/// makes exp(score - lse) 0.
template <class T>
__device__ inline T of_query(const void* values, const AttentionArguments& x, const TilePosition& at, int64_t query,
                             T outside) {
  return query < x.queries ? static_cast<const T*>(values)[at.head * x.queries + query] : outside;
}

/// Returns words of the random stream for a query and keys key … key + 3.
__device__ inline Words words_of(const AttentionArguments& x, const Position& stream, const TilePosition& at,
                                 int64_t query, int64_t key) {
  return words_at(stream, static_cast<uint64_t>((at.head * x.queries + query) * x.keys + key));
}

}  // namespace ringwise::tensor::cuda
