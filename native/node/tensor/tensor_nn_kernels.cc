// The kernels of neural networks as JavaScript calls them: normalisation, random numbers, attention. Those with more
// than four operands put all of them, strides and sizes into the scratch array. Argument lists are NativeAddon's in
// packages/tensor/src/backends/native/addon.ts.
#include <algorithm>
#include <stdexcept>

#include "node/tensor/tensor_call.h"
#include "tensor/cuda/libraries/cublas_lt.h"

namespace ringwise::node {

namespace {

void* dense_or_null(Call& call, size_t i, DType dtype, size_t count) {
  return call.has(i) ? call.dense(i, dtype, count) : nullptr;
}

/// The dtype of what belongs to a row of these.
DType computed_in(DType stored) { return is_half(stored) ? DType::Float32 : stored; }
tensor::Activation activation_at(Call& call, size_t i) {
  const int activation = call.integer(i);
  if (activation < 0 || activation >= static_cast<int>(tensor::Activation::Count)) {
    throw std::invalid_argument("linear: unknown activation.");
  }
  return static_cast<tensor::Activation>(activation);
}

/// A kernel that not every device has; its caller asks for the parts there.
template <class Kernel>
Kernel fused(Kernel kernel) {
  if (kernel == nullptr) throw std::invalid_argument("linear: no fused kernel. This is a bug in @ringwise/tensor.");
  return kernel;
}

/// (rows, cols, eps); operands: out, rstd, a, mean, addend, sum, gamma, beta, of which those from mean on may be absent
void norm(Call& call) {
  tensor::Norm x{};
  x.rows = call.size(0);
  x.cols = call.size(1);
  x.eps = call.number(2);
  const DType dtype = stored_in(call), row_type = computed_in(dtype);
  const size_t count = area(x.rows, x.cols);
  x.out = call.dense(0, dtype, count);
  x.rstd = call.dense(1, row_type, x.rows);
  x.a = call.dense(2, dtype, count);
  x.mean = dense_or_null(call, 3, row_type, x.rows);
  x.addend = dense_or_null(call, 4, dtype, count);
  if (x.addend) x.sum = call.dense(5, dtype, count);
  x.gamma = dense_or_null(call, 6, dtype, x.cols);
  x.beta = dense_or_null(call, 7, dtype, x.cols);
  call.kernels().norm(dtype, x);
}

/// (rows, cols, accumulate); operands: grad of out, rstd, a, mean, gamma, grads of a, gamma and beta; those from mean
/// on may be absent
void norm_grad(Call& call) {
  tensor::NormGrad x{};
  x.rows = call.size(0);
  x.cols = call.size(1);
  x.accumulate = call.flag(2);
  const DType dtype = stored_in(call), row_type = computed_in(dtype);
  const size_t count = area(x.rows, x.cols);
  x.grad_out = call.dense(0, dtype, count);
  x.rstd = call.dense(1, row_type, x.rows);
  x.a = call.dense(2, dtype, count);
  x.mean = dense_or_null(call, 3, row_type, x.rows);
  x.gamma = dense_or_null(call, 4, dtype, x.cols);
  x.grad_in = dense_or_null(call, 5, dtype, count);
  x.grad_gamma = dense_or_null(call, 6, dtype, x.cols);
  x.grad_beta = dense_or_null(call, 7, dtype, x.cols);
  call.kernels().norm_grad(dtype, x);
}

/// (rows, outs, ins, activation); operands: out, x, w, bias, values before the activation; the last two may be absent
tensor::Linear linear_operands(Call& call, DType dtype) {
  tensor::Linear x{};
  x.rows = call.size(0);
  x.outs = call.size(1);
  x.ins = call.size(2);
  x.activation = activation_at(call, 3);
  x.out = call.dense(0, dtype, area(x.rows, x.outs));
  x.x = call.dense(1, dtype, area(x.rows, x.ins));
  x.w = call.dense(2, dtype, area(x.outs, x.ins));
  x.bias = dense_or_null(call, 3, dtype, x.outs);
  x.before = dense_or_null(call, 4, dtype, area(x.rows, x.outs));
  return x;
}

void linear(Call& call) {
  const DType dtype = float_of(call);
  fused(call.kernels().linear)(dtype, linear_operands(call, dtype));
}

/// As linear, on a CUDA device, by the vendor's library; → whether that has it.
bool linear_by_library(Call& call) {
  const DType dtype = stored_in(call);
  const tensor::Linear x = linear_operands(call, dtype);
  call.kernels();  // enters the device
  return tensor::cuda::linear_by_library(dtype, x);
}

/// (rows, outs, activation); operands: gradient before the activation, of the result, what was saved, gradient of the
/// bias; the last may be absent
void linear_grad(Call& call) {
  tensor::LinearGrad x{};
  x.rows = call.size(0);
  x.outs = call.size(1);
  x.activation = activation_at(call, 2);
  const DType dtype = float_of(call);
  x.grad_before = call.dense(0, dtype, area(x.rows, x.outs));
  x.grad = call.dense(1, dtype, area(x.rows, x.outs));
  x.saved = call.dense(2, dtype, area(x.rows, x.outs));
  x.grad_bias = dense_or_null(call, 3, dtype, x.outs);
  fused(call.kernels().linear_grad)(dtype, x);
}

/// `live`: where a captured step has the seed and its first block; -1 outside of one.
tensor::Stream stream(const Call& call, double seed, double offset, double live) {
  if (!(seed >= 0) || !(offset >= 0)) throw std::invalid_argument("random: seed or offset is negative.");
  const int device = call.block(0).device;
  const auto* step = live >= 0 && device >= 0 ? tensor::cuda::step_being_captured(device) : nullptr;
  return {static_cast<uint64_t>(seed), static_cast<uint64_t>(offset),
          step ? step->address(static_cast<size_t>(live)) : nullptr};
}

/// (kind, count, seed, offset, low, high, live)
void random(Call& call) {
  const auto kind = static_cast<tensor::RandomKind>(call.integer(0));
  const bool is_integer = kind == tensor::RandomKind::Integers || kind == tensor::RandomKind::Bits;
  const size_t count = call.size(1);
  const double low = call.number(4), high = call.number(5);
  if (is_integer && !(high - low >= 0 && high - low <= 4294967296.0)) throw std::invalid_argument("random: bad range.");
  void* out = call.dense(0, is_integer ? DType::Int64 : DType::Float32, count);
  call.kernels().random(kind, out, count, stream(call, call.number(2), call.number(3), call.number(6)), low, high);
}

/// (count, p, seed, offset, live); operands: out, a
void dropout(Call& call) {
  const size_t count = call.size(0);
  const double p = call.number(1);
  if (!(p >= 0 && p < 1)) throw std::invalid_argument("dropout: p is not in [0, 1).");
  const DType dtype = stored_in(call);
  call.kernels().dropout(dtype, call.dense(0, dtype, count), call.dense(1, dtype, count), count, p,
                         stream(call, call.number(2), call.number(3), call.number(4)));
}

// Where strides and sizes of an attention lie in the scratch array.
constexpr size_t kMostOperands = 10, kStridesAt = 2 * kMostOperands, kSizesAt = kStridesAt + 4 * kMostOperands;
static_assert(kSizesAt + 12 <= kScratchCount);

/// Operand i as four dimensions of this shape; what they reach is checked.
struct Placed {
  char* data;
  ptrdiff_t strides[4];
};
Placed placed(Call& call, size_t i, DType dtype, std::initializer_list<size_t> shape) {
  Placed result{};
  if (std::count(shape.begin(), shape.end(), 0u) > 0) return result;  // never touched
  size_t reach = 1, d = 0;
  for (const size_t size : shape) {
    const double stride = call.scratch(kStridesAt + 4 * i + d);
    if (!(stride >= 0)) throw std::invalid_argument("attention: a stride is negative.");
    result.strides[d++] = static_cast<ptrdiff_t>(stride);
    reach += area(size - 1, static_cast<size_t>(stride));
  }
  result.data = static_cast<char*>(call.dense(i, dtype, reach));
  return result;
}

tensor::HeadRows head_rows(Call& call, size_t i, DType dtype, const tensor::Attention& x, size_t rows, size_t width) {
  const Placed at = placed(call, i, dtype, {x.batch, x.heads, rows, width});
  if (at.strides[3] > 1) throw std::invalid_argument("attention: rows are not dense.");
  return {at.data, at.strides[0], at.strides[1], at.strides[2]};
}

/// Operands: out, log Σ exp, q, k, v, mask, which may be absent; sizes: batch, heads, queries, keys, width, width of
/// values, scale, causal, dropout, seed, offset, live
tensor::Attention attention_of(Call& call, DType dtype) {
  const auto size = [&](size_t i) {
    const double value = call.scratch(kSizesAt + i);
    if (!(value >= 0)) throw std::invalid_argument("attention: a size is negative.");
    return static_cast<size_t>(value);
  };
  tensor::Attention x{};
  x.batch = size(0);
  x.heads = size(1);
  x.queries = size(2);
  x.keys = size(3);
  x.width = size(4);
  x.value_width = size(5);
  x.scale = call.scratch(kSizesAt + 6);
  x.causal = call.scratch(kSizesAt + 7) != 0;
  x.dropout = call.scratch(kSizesAt + 8);
  if (!(x.dropout >= 0 && x.dropout < 1)) throw std::invalid_argument("attention: dropout is not in [0, 1).");
  x.stream = stream(call, call.scratch(kSizesAt + 9), call.scratch(kSizesAt + 10), call.scratch(kSizesAt + 11));
  x.out = head_rows(call, 0, dtype, x, x.queries, x.value_width);
  x.lse = call.dense(1, computed_in(dtype), area(area(x.batch, x.heads), x.queries));
  x.q = head_rows(call, 2, dtype, x, x.queries, x.width);
  x.k = head_rows(call, 3, dtype, x, x.keys, x.width);
  x.v = head_rows(call, 4, dtype, x, x.keys, x.value_width);
  if (call.has(5)) {
    x.mask.dtype = call.block(5).dtype == DType::Bool ? DType::Bool : dtype;
    const Placed at = placed(call, 5, x.mask.dtype, {x.batch, x.heads, x.queries, x.keys});
    x.mask.data = at.data;
    x.mask.batch = at.strides[0];
    x.mask.head = at.strides[1];
    x.mask.row = at.strides[2];
    x.mask.col = at.strides[3];
  }
  return x;
}

/// ()
void attention(Call& call) {
  const DType dtype = stored_in(call);
  call.kernels().attention(dtype, attention_of(call, dtype));
}

/// (); operands as for attention, and the gradients of out, q, k, v
void attention_grad(Call& call) {
  const DType dtype = stored_in(call);
  tensor::AttentionGrad g{attention_of(call, dtype), {}, {}, {}, {}};
  const tensor::Attention& x = g.forward;
  g.grad_out = head_rows(call, 6, dtype, x, x.queries, x.value_width);
  g.grad_q = head_rows(call, 7, dtype, x, x.queries, x.width);
  g.grad_k = head_rows(call, 8, dtype, x, x.keys, x.width);
  g.grad_v = head_rows(call, 9, dtype, x, x.keys, x.value_width);
  call.kernels().attention_grad(dtype, g);
}

}  // namespace

void define_nn_kernels(napi_env env, napi_value exports, TensorState* state) {
  define_function(env, exports, state, "norm", &entry<norm>);
  define_function(env, exports, state, "normGrad", &entry<norm_grad>);
  define_function(env, exports, state, "linear", &entry<linear>);
  define_function(env, exports, state, "cudaLinear", &entry<linear_by_library>);
  define_function(env, exports, state, "linearGrad", &entry<linear_grad>);
  define_function(env, exports, state, "random", &entry<random>);
  define_function(env, exports, state, "dropout", &entry<dropout>);
  define_function(env, exports, state, "attention", &entry<attention>);
  define_function(env, exports, state, "attentionGrad", &entry<attention_grad>);
}

}  // namespace ringwise::node
