// Normalisation: the host's side of kernels/norm.cu and kernels/group_norm.cu.
#include <algorithm>

#include "tensor/cuda/launch/kernels.h"
#include "tensor/cuda/launch/launch.h"

namespace ringwise::tensor::cuda {

namespace {

/// The most elements of a row that a warp or a block of kThreads keeps: 32 per thread (kKept of kernels/norm.cu).
constexpr size_t kOfWarp = 32 * 32, kOfBlock = 32 * kThreads;

/// The launch of a row kernel. A warp shares a row that is short enough.
struct Layout {
  Grid grid;
  int threads;
  int kind;  // 0: warps, 1: blocks, 2: rows too long to be kept
};
Layout layout_of(DType dtype, size_t rows, size_t cols) {
  const bool is_warp = cols <= kOfWarp;
  const size_t pack = 16 / byte_size(dtype);
  const int threads = is_warp ? kThreads : block_threads((cols + pack - 1) / pack);
  const size_t per_block = is_warp ? kThreads / 32 : 1;
  const size_t most = static_cast<size_t>(current_device().multiprocessors()) * 32;
  return {{static_cast<unsigned>(std::min((rows + per_block - 1) / per_block, most))},
          threads,
          is_warp            ? 0
          : cols <= kOfBlock ? 1
                             : 2};
}

/// Returns whether rows consist of whole packs of 16 bytes, at multiples of 16. Null pointers do not count.
bool takes_row_packs(DType dtype, size_t cols, std::initializer_list<const void*> pointers) {
  return cols * byte_size(dtype) % 16 == 0 && are_aligned(pointers);
}

KernelId norm_kernel(DType dtype, int kind) {
  if (kind == 0) return by_stored(dtype, RINGWISE_STORED(norm_warp));
  return kind == 1 ? by_stored(dtype, RINGWISE_STORED(norm_block)) : by_stored(dtype, RINGWISE_STORED(norm_long));
}
KernelId norm_grad_kernel(DType dtype, int kind) {
  if (kind == 0) return by_stored(dtype, RINGWISE_STORED(norm_grad_warp));
  return kind == 1 ? by_stored(dtype, RINGWISE_STORED(norm_grad_block))
                   : by_stored(dtype, RINGWISE_STORED(norm_grad_long));
}

/// Computes the gradients of gamma and beta: sums over rows.
void norm_grad_columns(DType dtype, RowNormGradArguments x) {
  Device& device = current_device();
  const int64_t pack = 16 / static_cast<int64_t>(byte_size(dtype));
  x.use_column_packs = x.cols % pack == 0 && are_aligned({x.grad_out, x.a});
  const TeamWork work{x.use_column_packs ? x.cols / pack : x.cols, x.rows, true, x.use_column_packs != 0,
                      x.use_column_packs ? 2 : 4};
  const int64_t chunks = work.chunks();
  x.lanes = work.lanes();
  x.chunk = std::max<int64_t>((x.rows + chunks - 1) / chunks, 1);
  x.chunks = static_cast<int32_t>(std::max<int64_t>((x.rows + x.chunk - 1) / x.chunk, 1));
  const KernelId kernel = by_stored(dtype, RINGWISE_STORED(norm_grad_columns));
  const Grid grid{static_cast<unsigned>(work.blocks()), static_cast<unsigned>(x.chunks)};
  if (x.chunks == 1) return device.launch(kernel, grid, kThreads, x);
  const size_t bytes = dtype == DType::Float64 ? sizeof(double) : sizeof(float);
  const Scratch partial(static_cast<size_t>(x.chunks * 2 * x.cols) * bytes);
  x.partial = partial.data();
  device.launch(kernel, grid, kThreads, x);
  device.launch(by_stored(dtype, RINGWISE_STORED(norm_grad_chunks)), {static_cast<unsigned>((x.cols + 31) / 32)},
                kThreads, x);
}

/// Launches a block for each group of each sample.
template <class Arguments>
void launch_groups(KernelId kernel, Arguments x) {
  if (x.batch == 0 || x.groups == 0 || x.channels == 0) return;
  constexpr int64_t kMostGroups = 65535, kMostSamples = INT32_MAX;  // blocks in y and x, on every device
  const int64_t size = x.channels * x.inner;
  x.share = 1 / static_cast<double>(size);
  current_device().launch(
      kernel,
      {static_cast<unsigned>(std::min(x.batch, kMostSamples)), static_cast<unsigned>(std::min(x.groups, kMostGroups))},
      block_threads(static_cast<size_t>(size)), x);
}

}  // namespace

void norm(const Norm& n) {
  if (n.rows == 0 || n.cols == 0) return;
  RowNormArguments x{n.out,
                     n.mean,
                     n.rstd,
                     n.sum,
                     n.a,
                     n.addend,
                     n.gamma,
                     n.beta,
                     static_cast<int64_t>(n.rows),
                     static_cast<int64_t>(n.cols),
                     n.eps,
                     0,
                     0};
  x.use_packs = takes_row_packs(n.dtype, n.cols, {n.out, n.sum, n.a, n.addend, n.gamma, n.beta});
  const Layout layout = layout_of(n.dtype, n.rows, n.cols);
  current_device().launch(norm_kernel(n.dtype, layout.kind), layout.grid, layout.threads, x);
}

void norm_grad(const NormGrad& n) {
  if (n.cols == 0) return;
  RowNormGradArguments x{};
  x.grad_in = n.grad_in;
  x.grad_gamma = n.grad_gamma;
  x.grad_beta = n.grad_beta;
  x.grad_out = n.grad_out;
  x.a = n.a;
  x.mean = n.mean;
  x.rstd = n.rstd;
  x.gamma = n.gamma;
  x.rows = static_cast<int64_t>(n.rows);
  x.cols = static_cast<int64_t>(n.cols);
  x.accumulate = n.accumulate;
  x.use_packs = takes_row_packs(n.dtype, n.cols, {n.grad_in, n.grad_out, n.a, n.gamma});
  // First, because it allocates: if that fails, nothing has been added to the gradient of the input.
  if (n.grad_gamma || n.grad_beta) norm_grad_columns(n.dtype, x);
  if (n.grad_in && n.rows > 0) {
    const Layout layout = layout_of(n.dtype, n.rows, n.cols);
    current_device().launch(norm_grad_kernel(n.dtype, layout.kind), layout.grid, layout.threads, x);
  }
}

void group_norm(const GroupNorm& n) {
  const GroupNormArguments x{n.out,
                             n.mean,
                             n.rstd,
                             n.a,
                             n.gamma,
                             n.beta,
                             static_cast<int64_t>(n.batch),
                             static_cast<int64_t>(n.groups),
                             static_cast<int64_t>(n.channels),
                             static_cast<int64_t>(n.inner),
                             0,
                             n.eps};
  launch_groups(n.dtype == DType::Float64 ? KernelId::group_norm_double : KernelId::group_norm_float, x);
}

void group_norm_grad(const GroupNormGrad& n) {
  const GroupNormGradArguments x{n.grad_out,
                                 n.a,
                                 n.mean,
                                 n.rstd,
                                 n.gamma,
                                 n.grad_in,
                                 n.sums,
                                 static_cast<int64_t>(n.batch),
                                 static_cast<int64_t>(n.groups),
                                 static_cast<int64_t>(n.channels),
                                 static_cast<int64_t>(n.inner),
                                 0,
                                 n.accumulate};
  launch_groups(n.dtype == DType::Float64 ? KernelId::group_norm_grad_double : KernelId::group_norm_grad_float, x);
}

}  // namespace ringwise::tensor::cuda
