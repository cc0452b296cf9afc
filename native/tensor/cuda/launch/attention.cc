// Attention: the host's side of kernels/attention.cu, where cuDNN does not compute it.
#include <algorithm>
#include <stdexcept>

#include "tensor/cuda/launch/kernels.h"
#include "tensor/cuda/launch/launch.h"
#include "tensor/cuda/libraries/dnn_kernels.h"

namespace ringwise::tensor::cuda {

namespace {

/// The kernels of one pass: for float32, for float64, and for each 16-bit type those of narrow, middle and wide heads.
struct Pass {
  KernelId of_float, of_double, of_half[3], of_bfloat[3];
};
#define RINGWISE_WIDTHS(name, type) \
  {KernelId::name##_narrow_##type, KernelId::name##_middle_##type, KernelId::name##_wide_##type}
#define RINGWISE_PASS(name) \
  Pass { KernelId::name##_float, KernelId::name##_double, RINGWISE_WIDTHS(name, half), RINGWISE_WIDTHS(name, bfloat) }
constexpr Pass kForward = RINGWISE_PASS(attention), kGradQueries = RINGWISE_PASS(attention_grad_queries),
               kGradKeys = RINGWISE_PASS(attention_grad_keys);

/// One launch of a pass: the kernel, its threads, the rows that a block has, and the columns that it writes.
struct Plan {
  KernelId kernel;
  int threads;
  size_t rows, cols;
};
Plan plan_of(const Pass& pass, const Attention& a) {
  if (a.dtype == DType::Float32) return {pass.of_float, kThreads, 64, 64};
  if (a.dtype == DType::Float64) return {pass.of_double, kThreads, 32, 32};
  const size_t width = std::max(a.width, a.value_width);
  const int kind = width <= 64 ? 0 : width <= 128 ? 1 : 2;
  return {(a.dtype == DType::Float16 ? pass.of_half : pass.of_bfloat)[kind], kAttentionThreads, kAttentionRows,
          kind == 0 ? size_t{64} : 128};
}

HeadArguments head_of(const HeadRows& rows) { return {rows.data, rows.batch, rows.head, rows.row}; }

/// Returns whether each row begins where as many elements can be moved at once as the kernels move: four, or eight of a
/// 16-bit type.
bool takes_packs(DType dtype, const HeadRows& rows) {
  const ptrdiff_t pack = is_half(dtype) ? 8 : 4;
  return (is_half(dtype) ? are_aligned({rows.data}) : cuda::takes_packs(dtype, {rows.data})) &&
         rows.batch % pack == 0 && rows.head % pack == 0 && rows.row % pack == 0;
}

/// Returns whether all elements of the mask can be loaded in pairs of neighbours.
bool has_pairs(const Attention& a) {
  const AttentionMask& mask = a.mask;
  return a.keys % 2 == 0 && mask.col == 1 && mask.row % 2 == 0 && mask.head % 2 == 0 && mask.batch % 2 == 0 &&
         reinterpret_cast<uintptr_t>(mask.data) % (2 * byte_size(mask.dtype)) == 0;
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
  x.mask_pairs = has_pairs(a);
  x.use_packs =
      takes_packs(dtype, a.q) && takes_packs(dtype, a.k) && takes_packs(dtype, a.v) && takes_packs(dtype, a.out);
  return x;
}

/// Launches a block for each tile of `rows` in every head, and for each tile of `cols` columns.
void launch_tiles(const Pass& pass, const Attention& a, AttentionArguments& x, size_t rows, size_t cols) {
  const Plan plan = plan_of(pass, a);
  const size_t heads = a.batch * a.heads, tiles = (rows + plan.rows - 1) / plan.rows,
               parts = std::max<size_t>((cols + plan.cols - 1) / plan.cols, 1);
  if (heads * tiles == 0) return;
  if (heads * tiles > INT32_MAX || parts > 65535)
    throw std::invalid_argument("attention: there are too many tiles for one launch.");
  x.tiles = static_cast<int64_t>(tiles);
  current_device().launch(plan.kernel, {static_cast<unsigned>(heads * tiles), static_cast<unsigned>(parts)},
                          plan.threads, x);
}

/// Launches kDotThreads threads for each query. Sets x.tiles to the number of heads.
void launch_dots(DType dtype, AttentionArguments& x, size_t heads) {
  constexpr size_t kQueries = kThreads / kDotThreads;
  const size_t blocks = (heads * static_cast<size_t>(x.queries) + kQueries - 1) / kQueries;
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
  launch_tiles(kForward, a, x, a.queries, a.value_width);
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
    launch_tiles(kGradQueries, a, x, a.queries, a.width);
    launch_tiles(kGradKeys, a, x, a.keys, std::max(a.width, a.value_width));
  } catch (...) {
    device.free(x.dots);
    throw;
  }
  device.free(x.dots);
}

}  // namespace ringwise::tensor::cuda
