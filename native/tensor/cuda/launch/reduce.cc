// Reductions: the host's side of kernels/reduce.cu. Lays a reduction out on the device: which dimensions a block walks,
// how its threads share them, and when a long reduction is cut into chunks.

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <stdexcept>

#include "tensor/cuda/device/device.h"
#include "tensor/cuda/launch/arguments.h"
#include "tensor/cuda/launch/kernels.h"
#include "tensor/cuda/launch/launch.h"

namespace ringwise::tensor::cuda {

namespace {

// Rows: operations; columns: what computes.
constexpr KernelId kReductions[][3] = {
    {KernelId::reduce_sum_float, KernelId::reduce_sum_double, KernelId::reduce_sum_long},
    {KernelId::reduce_sum_float, KernelId::reduce_sum_double, KernelId::reduce_sum_long},  // means
    {KernelId::reduce_prod_float, KernelId::reduce_prod_double, KernelId::reduce_prod_long},
    {KernelId::reduce_max_float, KernelId::reduce_max_double, KernelId::reduce_max_long},
    {KernelId::reduce_min_float, KernelId::reduce_min_double, KernelId::reduce_min_long},
};
constexpr KernelId kArgReductions[][3] = {
    {KernelId::arg_min_float, KernelId::arg_min_double, KernelId::arg_min_long},
    {KernelId::arg_max_float, KernelId::arg_max_double, KernelId::arg_max_long},
};

int column_of(DType compute) {
  if (compute == DType::Float64) return 1;
  return compute == DType::Float32 || is_half(compute) ? 0 : 2;
}

/// Returns the arguments of a reduction. Dimensions along which the output moves are kept, the others are reduced.
ReduceArguments arguments_of(const Walk& simple) {
  ReduceArguments x{};
  x.in = simple.operand[1].data;
  x.out = simple.operand[0].data;
  x.in_dtype = static_cast<int32_t>(simple.operand[1].dtype);
  x.out_dtype = static_cast<int32_t>(simple.operand[0].dtype);
  x.kept_count = x.reduced_count = 1;
  for (int d = 0; d < simple.rank; d++) {
    const auto size = static_cast<int64_t>(simple.shape[d]);
    if (simple.operand[0].strides[d] != 0) {
      x.kept_shape[x.kept_rank] = size;
      x.kept_in[x.kept_rank] = simple.operand[1].strides[d];
      x.kept_out[x.kept_rank++] = simple.operand[0].strides[d];
      x.kept_count *= size;
    } else {
      x.reduced_shape[x.reduced_rank] = size;
      x.reduced_in[x.reduced_rank++] = simple.operand[1].strides[d];
      x.reduced_count *= size;
    }
  }
  x.chunk = x.reduced_count;
  // Neighbouring threads read along the denser dimension; the other threads of a block share the reduced elements.
  const bool is_column = x.kept_rank > 0 && x.reduced_rank > 0 && x.kept_count > 1 &&
                         std::abs(x.kept_in[x.kept_rank - 1]) < std::abs(x.reduced_in[x.reduced_rank - 1]);
  const auto ceil = [](int64_t count) {
    return static_cast<int>(std::bit_ceil(static_cast<uint64_t>(std::clamp<int64_t>(count, 1, kThreads))));
  };
  const int lanes = std::max(kThreads / ceil(x.reduced_count), is_column ? 32 : 1);
  x.lanes = std::min(lanes, ceil(x.kept_count));
  return x;
}

void launch(KernelId kernel, const ReduceArguments& x, int64_t chunks = 1) {
  if (x.kept_count == 0) return;
  const int64_t blocks = (x.kept_count + x.lanes - 1) / x.lanes;
  if (blocks > INT32_MAX) throw std::invalid_argument("reduce: the result has too many elements for one launch.");
  current_device().launch(kernel, {static_cast<unsigned>(blocks), static_cast<unsigned>(chunks)}, kThreads, x);
}

/// Returns the number of chunks of a reduction that gives the whole device work.
int64_t chunks_for(const ReduceArguments& x) {
  constexpr int64_t kLeastPerThread = 16, kMostChunks = 1024;
  const int64_t blocks = std::max<int64_t>((x.kept_count + x.lanes - 1) / x.lanes, 1);
  const int64_t wanted = 4 * static_cast<int64_t>(current_device().multiprocessors()) / blocks;
  const int64_t possible = x.reduced_count / (kThreads / x.lanes * kLeastPerThread);
  return std::clamp<int64_t>(std::min(wanted, possible), 1, kMostChunks);
}

/// Computes the totals of all chunks, [kept, chunks], then reduces these.
void reduce_in_chunks(ReduceOp op, DType compute, const ReduceArguments& x, int64_t chunks) {
  const bool is_extreme = op == ReduceOp::Max || op == ReduceOp::Min;
  const bool is_long = column_of(compute) == 2;
  const DType total = is_long      ? DType::Int64
                      : is_extreme ? (compute == DType::Float64 ? compute : DType::Float32)
                                   : DType::Float64;
  const auto bytes = static_cast<int64_t>(byte_size(total));
  ReduceArguments first = x;
  first.has_divisor = 0;
  first.chunk = (x.reduced_count + chunks - 1) / chunks;
  chunks = (x.reduced_count + first.chunk - 1) / first.chunk;
  void* partial = current_device().allocate(static_cast<size_t>(x.kept_count * chunks * bytes));
  first.out = partial;
  first.out_dtype = static_cast<int32_t>(total);
  first.chunk_stride = bytes;
  int64_t stride = chunks * bytes;
  for (int d = first.kept_rank - 1; d >= 0; d--) {
    first.kept_out[d] = stride;
    stride *= first.kept_shape[d];
  }
  ReduceArguments second = x;
  second.in = partial;
  second.in_dtype = first.out_dtype;
  std::copy_n(first.kept_out, kDims, second.kept_in);
  second.reduced_rank = 1;
  second.reduced_shape[0] = second.reduced_count = second.chunk = chunks;
  second.reduced_in[0] = bytes;
  second.lanes = 1;
  try {
    launch(kReductions[static_cast<int>(op)][column_of(compute)], first, chunks);
    launch(kReductions[static_cast<int>(op)][column_of(total)], second);
  } catch (...) {
    current_device().free(partial);
    throw;
  }
  current_device().free(partial);
}

}  // namespace

void reduce(const Reduce& given) {
  const auto& [op, walk] = given;
  const bool is_extreme = op == ReduceOp::Max || op == ReduceOp::Min;
  const DType in = walk.operand[1].dtype, compute = is_extreme ? in : converting_type(walk.operand[0].dtype, in);
  ReduceArguments x = arguments_of(simplified(walk));
  x.has_divisor = op == ReduceOp::Mean;
  x.divisor = x.reduced_count;
  if (x.kept_count == 0) return;
  const int64_t chunks = chunks_for(x);
  if (chunks > 1)
    reduce_in_chunks(op, compute, x, chunks);
  else
    launch(kReductions[static_cast<int>(op)][column_of(compute)], x);
}

void arg_reduce(const ArgReduce& x) {
  const auto& [is_max, walk] = x;
  launch(kArgReductions[is_max][column_of(walk.operand[1].dtype)], arguments_of(simplified(walk)));
}

}  // namespace ringwise::tensor::cuda
