// Attention: the host's side of kernels/attention.cu, where cuDNN does not compute it.
#include <algorithm>
#include <stdexcept>

#include "tensor/cuda/launch/kernels.h"
#include "tensor/cuda/launch/launch.h"
#include "tensor/cuda/libraries/dnn_kernels.h"

namespace ringwise::tensor::cuda {

namespace {

/// Returns the rows and columns of a tile (Tiles of kernels/attention.cuh).
size_t tile_of(DType dtype) { return dtype == DType::Float64 ? 32 : 64; }

HeadArguments head_of(const HeadRows& rows) { return {rows.data, rows.batch, rows.head, rows.row}; }

/// Returns whether each row begins where four elements can be moved at once.
bool takes_packs(DType dtype, const HeadRows& rows) {
  return cuda::takes_packs(dtype, {rows.data}) && rows.batch % 4 == 0 && rows.head % 4 == 0 && rows.row % 4 == 0;
}

AttentionArguments arguments_of(DType dtype, const Attention& a) {
  AttentionArguments x{};
  x.q = head_of(a.q);
  x.k = head_of(a.k);
  x.v = head_of(a.v);
  x.out = head_of(a.out);
  x.mask = {a.mask.data, a.mask.batch, a.mask.head, a.mask.row, a.mask.col};
  x.lse = a.lse;
  x.heads = static_cast<int64_t>(a.heads);
  x.queries = static_cast<int64_t>(a.queries);
  x.keys = static_cast<int64_t>(a.keys);
  x.width = static_cast<int64_t>(a.width);
  x.value_width = static_cast<int64_t>(a.value_width);
  x.stream = {a.stream.seed, a.stream.offset, a.stream.live};
  x.scale = a.scale;
  x.keep = 1 / (1 - a.dropout);
  x.limit = static_cast<uint32_t>(a.dropout * 4294967296.0);
  x.causal = a.causal;
  x.is_bool_mask = a.mask.dtype == DType::Bool;
  x.use_packs =
      takes_packs(dtype, a.q) && takes_packs(dtype, a.k) && takes_packs(dtype, a.v) && takes_packs(dtype, a.out);
  return x;
}

/// Launches a block for each tile of `rows` in every head, and for each tile of `cols` columns.
void launch_tiles(KernelId kernel, DType dtype, AttentionArguments& x, size_t heads, size_t rows, size_t cols) {
  const size_t tile = tile_of(dtype), tiles = (rows + tile - 1) / tile,
               parts = std::max<size_t>((cols + tile - 1) / tile, 1);
  if (heads * tiles == 0) return;
  if (heads * tiles > INT32_MAX || parts > 65535)
    throw std::invalid_argument("attention: there are too many tiles for one launch.");
  x.tiles = static_cast<int64_t>(tiles);
  current_device().launch(kernel, {static_cast<unsigned>(heads * tiles), static_cast<unsigned>(parts)}, kThreads, x);
}

/// Launches a warp for each query. Sets x.tiles to the number of heads.
void launch_dots(DType dtype, AttentionArguments& x, size_t heads) {
  constexpr size_t kWarps = kThreads / 32;
  const size_t blocks = (heads * static_cast<size_t>(x.queries) + kWarps - 1) / kWarps;
  if (blocks > INT32_MAX) throw std::invalid_argument("attention: there are too many queries for one launch.");
  x.tiles = static_cast<int64_t>(heads);
  if (blocks > 0)
    current_device().launch(by_stored(dtype, RINGWISE_STORED(attention_dots)), {static_cast<unsigned>(blocks)},
                            kThreads, x);
}

}  // namespace

void attention(const Attention& a) {
  const DType dtype = a.dtype;
  if (attend_by_library(a)) return;
  AttentionArguments x = arguments_of(dtype, a);
  launch_tiles(by_stored(dtype, RINGWISE_STORED(attention)), dtype, x, a.batch * a.heads, a.queries, a.value_width);
}

void attention_grad(const AttentionGrad& g) {
  if (attend_back_by_library(g)) return;
  const Attention& a = g;
  const DType dtype = g.dtype;
  AttentionArguments x = arguments_of(dtype, a);
  x.grad_out = head_of(g.grad_out);
  x.grad_q = head_of(g.grad_q);
  x.grad_k = head_of(g.grad_k);
  x.grad_v = head_of(g.grad_v);
  for (const HeadRows& rows : {g.grad_out, g.grad_q, g.grad_k, g.grad_v}) x.use_packs &= takes_packs(dtype, rows);
  const size_t heads = a.batch * a.heads, bytes = dtype == DType::Float64 ? sizeof(double) : sizeof(float);
  Device& device = current_device();
  x.dots = device.allocate(heads * a.queries * bytes);
  try {
    launch_dots(dtype, x, heads);
    launch_tiles(by_stored(dtype, RINGWISE_STORED(attention_grad_queries)), dtype, x, heads, a.queries, a.width);
    launch_tiles(by_stored(dtype, RINGWISE_STORED(attention_grad_keys)), dtype, x, heads, a.keys,
                 std::max(a.width, a.value_width));
  } catch (...) {
    device.free(x.dots);
    throw;
  }
  device.free(x.dots);
}

}  // namespace ringwise::tensor::cuda
