#include "tensor/cuda/launch/kernels.h"

#include <algorithm>
#include <stdexcept>

#include "tensor/cuda/launch/launch.h"
#include "tensor/cuda/launch/layers.h"
#include "tensor/cuda/launch/nn.h"
#include "tensor/cuda/launch/optimizer.h"
#include "tensor/cuda/launch/reduce.h"
#include "tensor/cuda/libraries/cublas_lt.h"

namespace ringwise::tensor::cuda {

namespace {

bool is_empty(const Walk& walk) {
  return std::any_of(walk.shape, walk.shape + walk.rank, [](size_t size) { return size == 0; });
}

/// One of three kernels, by what computes for a dtype.
KernelId by_type(DType compute, KernelId of_float, KernelId of_double, KernelId of_long) {
  switch (compute) {
    case DType::Float64: return of_double;
    case DType::Float32:
    case DType::Float16:
    case DType::BFloat16: return of_float;
    default: return of_long;
  }
}

double number_of(const Operand& operand) {
  return operand.is_number ? *reinterpret_cast<const double*>(operand.data) : 0;
}
void* data_of(const Operand& operand) { return operand.is_number ? nullptr : operand.data; }

/// Returns whether every operand of a simplified walk is dense or one element.
bool is_dense(const Walk& walk) {
  if (walk.rank != 1) return false;
  for (int i = 0; i < walk.operands; i++) {
    const Operand& operand = walk.operand[i];
    const bool is_one = operand.is_number || operand.strides[0] == 0;
    if (!is_one && operand.strides[0] != static_cast<ptrdiff_t>(byte_size(operand.dtype))) return false;
    if (is_one && i == 0 && walk.shape[0] != 1) return false;
  }
  return true;
}

void map_dense(int op, DType compute, const Walk& walk) {
  MapDenseArguments x{};
  x.count = static_cast<int64_t>(walk.shape[0]);
  x.op = op;
  x.operands = walk.operands;
  x.is_vector = 1;
  for (int i = 0; i < walk.operands; i++) {
    const Operand& operand = walk.operand[i];
    const bool is_one = i > 0 && (operand.is_number || operand.strides[0] == 0);
    x.operand[i] = {data_of(operand), number_of(operand), static_cast<int32_t>(operand.dtype), is_one ? 0 : 1};
    const size_t pack = std::min<size_t>(16, 4 * byte_size(operand.dtype));
    if (!is_one && reinterpret_cast<uintptr_t>(operand.data) % pack != 0) x.is_vector = 0;
  }
  launch_over((walk.shape[0] + 3) / 4,
              by_type(compute, KernelId::map_dense_float, KernelId::map_dense_double, KernelId::map_dense_long), x);
}

void map_strided(int op, DType compute, const Walk& walk) {
  MapStridedArguments x{};
  x.op = op;
  x.operands = walk.operands;
  x.rank = walk.rank;
  x.count = 1;
  for (int d = 0; d < walk.rank; d++) {
    x.shape[d] = static_cast<int64_t>(walk.shape[d]);
    x.count *= x.shape[d];
  }
  for (int i = 0; i < walk.operands; i++) {
    const Operand& operand = walk.operand[i];
    x.operand[i].data = data_of(operand);
    x.operand[i].number = number_of(operand);
    x.operand[i].dtype = static_cast<int32_t>(operand.dtype);
    for (int d = 0; d < walk.rank; d++) x.operand[i].strides[d] = operand.is_number ? 0 : operand.strides[d];
  }
  launch_over(static_cast<size_t>(x.count),
              by_type(compute, KernelId::map_strided_float, KernelId::map_strided_double, KernelId::map_strided_long),
              x);
}

void map_simplified(int op, DType compute, const Walk& walk) {
  if (is_empty(walk)) return;
  if (is_dense(walk))
    map_dense(op, compute, walk);
  else
    map_strided(op, compute, walk);
}

void map(MapOp op, DType compute, const Walk& walk) { map_simplified(static_cast<int>(op), compute, simplified(walk)); }

void copy(const Walk& walk) {
  const Walk simple = simplified(walk);
  const Operand &out = simple.operand[0], &in = simple.operand[1];
  const bool is_block = simple.rank == 1 && out.dtype == in.dtype && !in.is_number && is_dense(simple) &&
                        (in.strides[0] != 0 || simple.shape[0] == 1);
  if (is_block) return current_device().copy(out.data, in.data, simple.shape[0] * byte_size(out.dtype));
  map_simplified(kIdentity, converting_type(out.dtype, in.dtype), simple);
}

/// One block for each row.
template <class Arguments>
void softmax_rows(KernelId kernel, const Arguments& x) {
  if (x.rows == 0) return;
  if (x.rows > INT32_MAX) throw std::invalid_argument("softmax: more than 2^31 rows do not fit into one launch.");
  current_device().launch(kernel, {static_cast<unsigned>(x.rows)}, block_threads(static_cast<size_t>(x.cols)), x);
}

void log_softmax(DType dtype, void* out, const void* a, size_t rows, size_t cols) {
  softmax_rows(dtype == DType::Float64 ? KernelId::log_softmax_double : KernelId::log_softmax_float,
               SoftmaxArguments{out, a, nullptr, static_cast<int64_t>(rows), static_cast<int64_t>(cols)});
}

void log_softmax_grad(DType dtype, void* grad_in, const void* grad_out, const void* out, size_t rows, size_t cols) {
  softmax_rows(dtype == DType::Float64 ? KernelId::log_softmax_grad_double : KernelId::log_softmax_grad_float,
               SoftmaxArguments{grad_in, grad_out, out, static_cast<int64_t>(rows), static_cast<int64_t>(cols)});
}

NllArguments nll_arguments(void* out, const void* in, DType label, const void* labels, size_t rows, size_t cols) {
  return {out,
          in,
          labels,
          current_device().fault(),
          static_cast<int64_t>(rows),
          static_cast<int64_t>(cols),
          label == DType::Int64,
          0};
}

void nll(DType dtype, void* losses, const void* log_probs, DType label, const void* labels, size_t rows, size_t cols) {
  launch_over(rows, dtype == DType::Float64 ? KernelId::nll_double : KernelId::nll_float,
              nll_arguments(losses, log_probs, label, labels, rows, cols));
}

void nll_grad(DType dtype, void* grad_in, const void* grad_losses, DType label, const void* labels, size_t rows,
              size_t cols) {
  launch_over(rows * cols, dtype == DType::Float64 ? KernelId::nll_grad_double : KernelId::nll_grad_float,
              nll_arguments(grad_in, grad_losses, label, labels, rows, cols));
}

CrossEntropyArguments cross_entropy_arguments(const CrossEntropy& x) {
  CrossEntropyArguments arguments{};
  arguments.out = x.losses;
  arguments.counts = x.counts;
  arguments.kept = x.kept;
  arguments.scores = x.scores;
  arguments.labels = x.labels;
  arguments.weight = x.weight;
  arguments.fault = current_device().fault();
  arguments.rows = static_cast<int64_t>(x.rows);
  arguments.cols = static_cast<int64_t>(x.cols);
  arguments.ignored = x.ignored;
  arguments.smoothing = x.smoothing;
  arguments.is_long = x.label == DType::Int64;
  return arguments;
}

void cross_entropy(DType dtype, const CrossEntropy& x) {
  softmax_rows(dtype == DType::Float64 ? KernelId::cross_entropy_double : KernelId::cross_entropy_float,
               cross_entropy_arguments(x));
}

void cross_entropy_grad(DType dtype, const CrossEntropyGrad& g) {
  CrossEntropyArguments x = cross_entropy_arguments(g.forward);
  x.out = g.grad_scores;
  x.grad = g.grad;
  x.divisor = g.divisor;
  x.number = g.number;
  x.is_per_row = g.is_per_row;
  softmax_rows(dtype == DType::Float64 ? KernelId::cross_entropy_grad_double : KernelId::cross_entropy_grad_float, x);
}

LookupArguments lookup_arguments(DType dtype, void* out, const void* a, const int64_t* index, const LookupSizes& x) {
  return {out,
          a,
          index,
          current_device().fault(),
          static_cast<int64_t>(x.outer),
          static_cast<int64_t>(x.count),
          static_cast<int64_t>(x.size),
          static_cast<int64_t>(x.inner),
          static_cast<int32_t>(dtype),
          x.per_element,
          1,
          0};
}

void lookup(DType dtype, void* out, const void* a, const int64_t* index, const LookupSizes& x) {
  launch_over(x.outer * x.count * x.inner, KernelId::lookup, lookup_arguments(dtype, out, a, index, x));
}

void scatter_add(DType dtype, void* out, const void* a, const int64_t* index, const LookupSizes& x) {
  const size_t columns = x.outer * x.inner;
  if (columns == 0 || x.count == 0) return;
  LookupArguments arguments = lookup_arguments(dtype, out, a, index, x);
  // As many shares as keep the device busy; each reads all indices.
  const size_t threads = static_cast<size_t>(current_device().multiprocessors()) * 1024;
  arguments.slices = static_cast<int32_t>(std::clamp<size_t>(threads / columns, 1, std::clamp<size_t>(x.size, 1, 64)));
  launch_over(columns * static_cast<size_t>(arguments.slices), KernelId::scatter_add, arguments);
}

void cumsum(DType dtype, void* out, const void* a, size_t outer, size_t size, size_t inner, bool reverse) {
  launch_over(outer * inner, KernelId::cumsum,
              CumsumArguments{out, a, static_cast<int64_t>(outer), static_cast<int64_t>(size),
                              static_cast<int64_t>(inner), static_cast<int32_t>(dtype), reverse});
}

void sort(DType dtype, void* values, int64_t* indices, const void* a, size_t rows, size_t cols, size_t count,
          bool descending) {
  if (count == 0) return;
  launch_over(rows * cols, KernelId::sort,
              SortArguments{values, indices, a, static_cast<int64_t>(rows), static_cast<int64_t>(cols),
                            static_cast<int64_t>(count), static_cast<int32_t>(dtype), descending});
}

void triangle(DType dtype, void* out, const void* a, size_t batch, size_t rows, size_t cols, int64_t diagonal,
              bool upper) {
  launch_over(batch * rows * cols, KernelId::triangle,
              TriangleArguments{out, a, static_cast<int64_t>(batch), static_cast<int64_t>(rows),
                                static_cast<int64_t>(cols), diagonal, static_cast<int32_t>(byte_size(dtype)), upper});
}

/// Strides of the walk are bytes, as the addon has made them; its operands are C, A, B.
void matmul_walk(const Walk& walk, const MatmulSizes& sizes) {
  if (multiply_by_library(walk, sizes)) return;
  constexpr size_t kTile = 64, kMostRows = 65535;
  const DType dtype = walk.operand[0].dtype;
  const auto bytes = static_cast<int64_t>(byte_size(dtype));
  MatmulArguments x{};
  x.c = walk.operand[0].data;
  x.a = walk.operand[1].data;
  x.b = walk.operand[2].data;
  x.m = static_cast<int64_t>(sizes.m);
  x.n = static_cast<int64_t>(sizes.n);
  x.k = static_cast<int64_t>(sizes.k);
  x.a_step = static_cast<int64_t>(sizes.a_step);
  x.b_step = static_cast<int64_t>(sizes.b_step);
  x.trans_a = sizes.trans_a;
  x.trans_b = sizes.trans_b;
  x.accumulate = sizes.accumulate;
  x.batch = 1;
  x.rank = walk.rank;
  for (int d = 0; d < walk.rank; d++) {
    x.shape[d] = static_cast<int64_t>(walk.shape[d]);
    x.batch *= x.shape[d];
    x.c_stride[d] = walk.operand[0].strides[d] / bytes;
    x.a_stride[d] = walk.operand[1].strides[d] / bytes;
    x.b_stride[d] = walk.operand[2].strides[d] / bytes;
  }
  const size_t tiles_across = (sizes.n + kTile - 1) / kTile, tiles_down = (sizes.m + kTile - 1) / kTile;
  if (tiles_across > INT32_MAX) throw std::invalid_argument("matmul: the matrix has too many columns for one launch.");
  const Grid grid{static_cast<unsigned>(tiles_across), static_cast<unsigned>(std::min(tiles_down, kMostRows)),
                  static_cast<unsigned>(std::min(static_cast<size_t>(x.batch), kMostRows))};
  current_device().launch(by_stored(dtype, RINGWISE_STORED(matmul)), grid, kThreads, x);
}

Kernels make_kernels() {
  Kernels k{};
  k.name = "cuda";
  k.map = &map;
  k.copy = &copy;
  k.reduce = &reduce;
  k.arg_reduce = &arg_reduce;
  k.matmul_walk = &matmul_walk;
  k.log_softmax = &log_softmax;
  k.log_softmax_grad = &log_softmax_grad;
  k.nll = &nll;
  k.nll_grad = &nll_grad;
  k.cross_entropy = &cross_entropy;
  k.cross_entropy_grad = &cross_entropy_grad;
  k.lookup = &lookup;
  k.scatter_add = &scatter_add;
  k.cumsum = &cumsum;
  k.sort = &sort;
  k.triangle = &triangle;
  add_layers(k);
  add_norms(k);
  add_random(k);
  add_attention(k);
  k.optimize = &optimize;
  k.start_total_norm = &start_total_norm;
  k.start_scale = &start_scale;
  return k;
}

}  // namespace

const Kernels& kernels() {
  static const Kernels table = make_kernels();
  return table;
}

}  // namespace ringwise::tensor::cuda
