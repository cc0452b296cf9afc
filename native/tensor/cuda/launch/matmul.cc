// Matrix products and the linear layer: cuBLASLt, or the host's side of matmul.cu.
#include <algorithm>
#include <cstdint>
#include <stdexcept>

#include "tensor/cuda/launch/kernels.h"
#include "tensor/cuda/launch/launch.h"
#include "tensor/cuda/libraries/cublas_lt.h"

namespace ringwise::tensor::cuda {

namespace {

/// Returns whether each row of each matrix of an operand begins at a multiple of `bytes`. `step`: elements from one row
/// to the next.
bool has_aligned_rows(const Walk& walk, int operand, size_t step, size_t bytes) {
  const Operand& x = walk.operand[operand];
  bool is_aligned = reinterpret_cast<uintptr_t>(x.data) % bytes == 0 && step * byte_size(x.dtype) % bytes == 0;
  for (int d = 0; d < walk.rank; d++)
    is_aligned = is_aligned && (walk.shape[d] == 1 || x.strides[d] % static_cast<ptrdiff_t>(bytes) == 0);
  return is_aligned;
}

constexpr size_t tiles_of(size_t count, size_t tile) { return (count + tile - 1) / tile; }

/// Returns whether a product of 16-bit types has enough wide tiles to give each multiprocessor one.
bool takes_wide_tiles(size_t matrices, const MatmulSizes& x) {
  return matrices * tiles_of(x.m, kMatmulWideTile) * tiles_of(x.n, kMatmulWideTile) >=
         static_cast<size_t>(current_device().multiprocessors());
}

}  // namespace

/// Multiplies matrices. The strides of the walk are bytes; its operands are C, A, B.
void matmul(const Matmul& sizes) {
  const Walk& walk = sizes.walk;
  if (multiply_by_library(walk, sizes)) return;
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
  size_t matrices = 1;
  x.rank = walk.rank;
  for (int d = 0; d < walk.rank; d++) {
    x.shape[d] = static_cast<int64_t>(walk.shape[d]);
    matrices *= walk.shape[d];
    x.c_stride[d] = walk.operand[0].strides[d] / bytes;
    x.a_stride[d] = walk.operand[1].strides[d] / bytes;
    x.b_stride[d] = walk.operand[2].strides[d] / bytes;
  }
  KernelId kernel = by_stored(dtype, RINGWISE_STORED(matmul));
  size_t tile = kMatmulTile;
  if (is_half(dtype)) {
    x.a_packs = has_aligned_rows(walk, 1, sizes.a_step, 16);
    x.b_packs = has_aligned_rows(walk, 2, sizes.b_step, 16);
    x.c_pairs = has_aligned_rows(walk, 0, sizes.n, 4);
    if (takes_wide_tiles(matrices, sizes))
      tile = kMatmulWideTile;
    else
      kernel = dtype == DType::Float16 ? KernelId::matmul_small_half : KernelId::matmul_small_bfloat;
  }
  const size_t down = tiles_of(sizes.m, tile), across = tiles_of(sizes.n, tile);
  if (down * across > INT32_MAX || down * across * matrices > INT32_MAX)
    throw std::invalid_argument("matmul: the result has too many tiles for one launch.");
  if (down * across * matrices == 0) return;
  x.tiles_down = static_cast<uint32_t>(down);
  x.tiles_across = static_cast<uint32_t>(across);
  const Grid grid{static_cast<unsigned>(down * across * matrices)};
  current_device().launch(kernel, grid, kThreads, x);
}

namespace {

/// Returns an operand over [rows, cols] with these strides, in elements.
Operand operand_of(const void* data, DType dtype, size_t row_stride, size_t col_stride) {
  Operand operand;
  operand.data = static_cast<char*>(const_cast<void*>(data));  // a walk has no const; inputs are not written
  operand.dtype = dtype;
  operand.strides[0] = static_cast<ptrdiff_t>(row_stride);
  operand.strides[1] = static_cast<ptrdiff_t>(col_stride);
  return operand;
}

Walk walk_over(size_t rows, size_t cols, std::initializer_list<Operand> operands) {
  Walk walk;
  walk.rank = 2;
  walk.operands = static_cast<int>(operands.size());
  walk.shape[0] = rows;
  walk.shape[1] = cols;
  std::copy(operands.begin(), operands.end(), walk.operand);
  return walk;
}

constexpr double kZero = 0;

/// Computes out = x · wᵀ, and 0 if x has no columns.
void multiply_rows(const Linear& x, void* out) {
  if (x.ins == 0) {
    Operand zero = operand_of(&kZero, DType::Float64, 0, 0);
    zero.is_number = true;
    return copy({walk_over(x.rows, x.outs, {operand_of(out, x.dtype, x.outs, 1), zero})});
  }
  Matmul product{};
  product.m = x.rows;
  product.n = x.outs;
  product.k = product.a_step = product.b_step = x.ins;
  product.trans_b = true;
  const auto one = [&](const void* data) { return operand_of(data, x.dtype, 0, 0); };
  product.walk = walk_over(1, 1, {one(out), one(x.x), one(x.w)});
  matmul(product);
}

MapOp forward_of(Activation activation) {
  switch (activation) {
    case Activation::Relu: return MapOp::Relu;
    case Activation::Gelu: return MapOp::Gelu;
    default: return MapOp::GeluTanh;
  }
}
MapOp gradient_of(Activation activation) {
  switch (activation) {
    case Activation::Relu: return MapOp::ReluGrad;
    case Activation::Gelu: return MapOp::GeluGrad;
    default: return MapOp::GeluTanhGrad;
  }
}

}  // namespace

/// Tries the library with the activation, then without it, and else computes the layer in parts.
void linear(const Linear& x) {
  if (x.rows == 0 || x.outs == 0 || linear_by_library(x)) return;
  void* const sums = x.before ? x.before : x.out;
  const auto elements = [&](const void* data) { return operand_of(data, x.dtype, x.outs, 1); };
  Linear plain = x;
  plain.out = sums;
  plain.before = nullptr;
  plain.activation = Activation::None;
  if (x.activation == Activation::None || !linear_by_library(plain)) {
    multiply_rows(x, sums);
    if (x.bias) {
      const Operand bias = operand_of(x.bias, x.dtype, 0, 1);
      map({MapOp::Add, x.dtype, walk_over(x.rows, x.outs, {elements(sums), elements(sums), bias})});
    }
  }
  const Walk walk = walk_over(x.rows, x.outs, {elements(x.out), elements(sums)});
  if (x.activation != Activation::None)
    map({forward_of(x.activation), x.dtype, walk});
  else if (sums != x.out)
    copy({walk});
}

void linear_grad(const LinearGrad& x) {
  const auto elements = [&](const void* data) { return operand_of(data, x.dtype, x.outs, 1); };
  const Operand before = elements(x.grad_before);
  map({gradient_of(x.activation), x.dtype, walk_over(x.rows, x.outs, {before, elements(x.grad), elements(x.saved)})});
  if (x.grad_bias) reduce({ReduceOp::Sum, walk_over(x.rows, x.outs, {operand_of(x.grad_bias, x.dtype, 0, 1), before})});
}

}  // namespace ringwise::tensor::cuda
