// The kernels as JavaScript calls them. Their argument lists are NativeAddon's in
// packages/tensor/src/backends/native-addon.ts.
#include "node/tensor_call.h"

namespace ringwise::node {

namespace {

using tensor::Block;
using tensor::Walk;

/// Elements of a walk's output.
template <int N>
size_t walk_count(const Walk<N>& walk) {
  size_t count = 1;
  for (int d = 0; d < walk.rank; d++) count = area(count, walk.shape[d]);
  return count;
}

/// Throws unless everything that input i of the walk reads lies in [0, count).
template <int N>
void check_reach(const Walk<N>& walk, int i, size_t offset, size_t count) {
  if (walk_count(walk) == 0) return;
  double lowest = static_cast<double>(offset), highest = lowest;
  for (int d = 0; d < walk.rank; d++) {
    const double reach = static_cast<double>(walk.shape[d] - 1) * static_cast<double>(walk.strides[i][d]);
    (reach < 0 ? lowest : highest) += reach;
  }
  if (lowest < 0 || highest >= static_cast<double>(count)) {
    throw std::out_of_range("kernel call: strides reach outside of the memory. This is a bug in @ringwise/tensor.");
  }
}

void fill(Call& call) {
  const Block& out = call.block(0);
  call.kernels().fill(out.dtype, out.data, call.number(1), out.count);
}

void copy(Call& call) {
  const Block& out = call.block(0);
  const Block& a = call.block(1);
  call.data(1, a.dtype, out.count);
  call.kernels().copy(out.dtype, out.data, a.dtype, a.data, out.count);
}

void strided(Call& call) {
  const Block& a = call.block(1);
  const size_t offset = call.size(2);
  const Walk<1> walk = call.walk<1>();
  void* out = call.data(0, a.dtype, walk_count(walk));
  check_reach(walk, 0, offset, a.count);
  const size_t bytes = byte_size(a.dtype);
  call.kernels().strided(bytes, out, static_cast<const char*>(a.data) + offset * bytes, walk);
}

void unary(Call& call) {
  const Block& out = call.block(1);
  call.kernels().unary(static_cast<tensor::UnaryOp>(call.integer(0)), call.floats(1, 0), call.floats(2, out.count),
                       out.count);
}

void binary(Call& call) {
  const Block& a = call.block(2);
  const Walk<2> walk = call.walk<2>();
  void* out = call.data(1, a.dtype, walk_count(walk));
  const void* b = call.data(3, a.dtype, 0);
  check_reach(walk, 0, 0, a.count);
  check_reach(walk, 1, 0, call.block(3).count);
  call.kernels().binary(static_cast<tensor::BinaryOp>(call.integer(0)), a.dtype, out, a.data, b, walk);
}

void affine(Call& call) {
  const size_t count = call.block(0).count;
  call.kernels().affine(call.floats(0, 0), call.floats(1, count), static_cast<float>(call.number(2)),
                        static_cast<float>(call.number(3)), count);
}

void axpy(Call& call) {
  const size_t count = call.block(0).count;
  call.kernels().axpy(call.floats(0, 0), call.floats(1, count), static_cast<float>(call.number(2)), count);
}

void reduce(Call& call) {
  const Block& a = call.block(2);
  const size_t outer = call.size(3), size = call.size(4), inner = call.size(5);
  void* out = call.data(1, a.dtype, area(outer, inner));
  call.data(2, a.dtype, area(area(outer, size), inner));
  call.kernels().reduce(static_cast<tensor::ReduceOp>(call.integer(0)), a.dtype, out, a.data, outer, size, inner);
}

void argmax(Call& call) {
  const Block& a = call.block(1);
  const size_t outer = call.size(2), size = call.size(3), inner = call.size(4);
  auto* out = static_cast<int32_t*>(call.data(0, DType::Int32, area(outer, inner)));
  call.data(1, a.dtype, area(area(outer, size), inner));
  call.kernels().argmax(a.dtype, out, a.data, outer, size, inner);
}

void matmul(Call& call) {
  const size_t m = call.size(3), n = call.size(4), k = call.size(5);
  // Bits: transA, transB, accumulate.
  const int flags = call.integer(6);
  call.kernels().matmul(call.floats(0, area(m, n)), call.floats(1, area(m, k)), call.floats(2, area(k, n)), m, n, k,
                        flags & 1, flags & 2, flags & 4);
}

void log_softmax(Call& call) {
  const size_t rows = call.size(2), cols = call.size(3), count = area(rows, cols);
  call.kernels().log_softmax(call.floats(0, count), call.floats(1, count), rows, cols);
}

void log_softmax_grad(Call& call) {
  const size_t rows = call.size(3), cols = call.size(4), count = area(rows, cols);
  call.kernels().log_softmax_grad(call.floats(0, count), call.floats(1, count), call.floats(2, count), rows, cols);
}

void nll(Call& call) {
  const size_t rows = call.size(3), cols = call.size(4);
  const Block& labels = call.labels(2, rows);
  call.kernels().nll(call.floats(0, rows), call.floats(1, area(rows, cols)), labels.dtype, labels.data, rows, cols);
}

void nll_grad(Call& call) {
  const size_t rows = call.size(3), cols = call.size(4);
  const Block& labels = call.labels(2, rows);
  call.kernels().nll_grad(call.floats(0, area(rows, cols)), call.floats(1, rows), labels.dtype, labels.data, rows, cols);
}

void sgd(Call& call) {
  const size_t count = call.block(0).count;
  // Handle 0 stands for no velocity.
  float* velocity = call.integer(2) == 0 ? nullptr : call.floats(2, count);
  tensor::SgdOptions options;
  options.lr = static_cast<float>(call.number(3));
  options.momentum = static_cast<float>(call.number(4));
  options.dampening = static_cast<float>(call.number(5));
  options.weight_decay = static_cast<float>(call.number(6));
  options.nesterov = call.integer(7) & 1;
  options.first = call.integer(7) & 2;
  call.kernels().sgd(call.floats(0, 0), call.floats(1, count), velocity, options, count);
}

}  // namespace

void define_kernels(napi_env env, napi_value exports, TensorState* state) {
  const auto define = [&](const char* name, napi_callback callback) {
    napi_value function;
    if (napi_create_function(env, name, NAPI_AUTO_LENGTH, callback, state, &function) != napi_ok ||
        napi_set_named_property(env, exports, name, function) != napi_ok) {
      throw Napi::Error::New(env);
    }
  };
  define("fill", &entry<fill>);
  define("copy", &entry<copy>);
  define("strided", &entry<strided>);
  define("unary", &entry<unary>);
  define("binary", &entry<binary>);
  define("affine", &entry<affine>);
  define("axpy", &entry<axpy>);
  define("reduce", &entry<reduce>);
  define("argmax", &entry<argmax>);
  define("matmul", &entry<matmul>);
  define("logSoftmax", &entry<log_softmax>);
  define("logSoftmaxGrad", &entry<log_softmax_grad>);
  define("nll", &entry<nll>);
  define("nllGrad", &entry<nll_grad>);
  define("sgd", &entry<sgd>);
}

}  // namespace ringwise::node
