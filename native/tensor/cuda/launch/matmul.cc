// Matrix products and the linear layer: the vendor's library, or the host's side of kernels/matmul.cu.
#include <algorithm>
#include <cstdint>
#include <stdexcept>

#include "tensor/cuda/launch/kernels.h"
#include "tensor/cuda/launch/launch.h"
#include "tensor/cuda/libraries/cublas_lt.h"

namespace ringwise::tensor::cuda {

/// Multiplies matrices. The strides of the walk are bytes; its operands are C, A, B.
void matmul(const Matmul& sizes) {
  const Walk& walk = sizes.walk;
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

namespace {

/// Returns an operand over [rows, cols] with these strides.
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
