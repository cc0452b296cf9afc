// The kernels as JavaScript calls them, with operands in the scratch array. Argument lists are NativeAddon's in
// packages/tensor/src/backends/native/addon.ts.
#include <algorithm>
#include <limits>
#include <stdexcept>

#include "node/tensor/tensor_call.h"

namespace ringwise::node {

namespace {

using tensor::Walk;

/// Dtypes travel by their number in base/dtype.h.
DType dtype_at(Call& call, size_t i) { return static_cast<DType>(call.integer(i)); }

/// (op, compute, number of operands)
void map(Call& call) {
  const int op = call.integer(0);
  if (op < 0 || op >= static_cast<int>(tensor::MapOp::Count)) throw std::invalid_argument("map: unknown operation.");
  call.kernels().map(static_cast<tensor::MapOp>(op), dtype_at(call, 1), call.walk(std::clamp(call.integer(2), 2, 4)));
}

/// ()
void copy(Call& call) { call.kernels().copy(call.walk(2)); }

/// (op)
void reduce(Call& call) { call.kernels().reduce(static_cast<tensor::ReduceOp>(call.integer(0)), call.walk(2)); }

/// (is maximum)
void arg_reduce(Call& call) {
  const Walk walk = call.walk(2);
  if (walk.operand[0].dtype != DType::Int64) throw std::invalid_argument("argReduce: the output is not int64.");
  call.kernels().arg_reduce(call.flag(0), walk);
}

/// Elements of a stored matrix, from its first to its last.
size_t span(size_t rows, size_t cols, size_t step) { return area(rows - 1, step) + cols; }

/// (m, n, k, step of A, step of B, flags: transA 1, transB 2, accumulate 4), none of the sizes 0. One product for each
/// index of the walk, which says where its matrices begin.
void matmul(Call& call) {
  const int flags = call.integer(5);
  const tensor::MatmulSizes x{call.size(0), call.size(1),     call.size(2),     call.size(3),
                              call.size(4), (flags & 1) != 0, (flags & 2) != 0, (flags & 4) != 0};
  Walk walk = call.walk(3);
  if (x.m == 0 || x.n == 0 || x.k == 0 || walk.rank == tensor::kMaxRank)
    throw std::invalid_argument("matmul: bad sizes.");
  const DType dtype = walk.operand[0].dtype;
  size_t counts[] = {area(x.m, x.n), x.trans_a ? span(x.k, x.m, x.a_step) : span(x.m, x.k, x.a_step),
                     x.trans_b ? span(x.n, x.k, x.b_step) : span(x.k, x.n, x.b_step)};
  for (size_t i = 0; i < 3; i++) {
    for (int d = 0; d < walk.rank; d++) {
      if (walk.shape[d] == 0) return;
      ptrdiff_t& stride = walk.operand[i].strides[d];
      if (stride < 0) throw std::invalid_argument("matmul: a stride between matrices is negative.");
      counts[i] += area(walk.shape[d] - 1, static_cast<size_t>(stride));
      stride *= static_cast<ptrdiff_t>(byte_size(dtype));
    }
    call.dense(i, dtype, counts[i]);
    walk.operand[i].strides[walk.rank] = 0;
  }
  walk.shape[walk.rank++] = 1;
  if (const auto whole = call.kernels().matmul_walk) return whole(walk, x);
  // Threads share the batch where that is enough for all of them, and each product where it is not.
  constexpr size_t kGrainProducts = size_t{1} << 20;
  const size_t products = area(area(x.m, x.n), x.k);
  const size_t grain = products < kGrainProducts ? kGrainProducts / products : std::numeric_limits<size_t>::max() / 2;
  const auto multiply = [&](char* const* at) {
    if (dtype == DType::Float32) {
      call.kernels().matmul(reinterpret_cast<float*>(at[0]), reinterpret_cast<float*>(at[1]),
                            reinterpret_cast<float*>(at[2]), x);
    } else if (dtype == DType::Float64) {
      call.kernels().matmul_double(reinterpret_cast<double*>(at[0]), reinterpret_cast<double*>(at[1]),
                                   reinterpret_cast<double*>(at[2]), x);
    }
  };
  for_each_part_of(walk, grain, [&](const Walk& part) { for_each_row(part, multiply); });
}

/// (rows, cols)
void log_softmax(Call& call) {
  const size_t rows = call.size(0), cols = call.size(1), count = area(rows, cols);
  const DType dtype = float_of(call);
  call.kernels().log_softmax(dtype, call.dense(0, dtype, count), call.dense(1, dtype, count), rows, cols);
}

/// (rows, cols)
void log_softmax_grad(Call& call) {
  const size_t rows = call.size(0), cols = call.size(1), count = area(rows, cols);
  const DType dtype = float_of(call);
  call.kernels().log_softmax_grad(dtype, call.dense(0, dtype, count), call.dense(1, dtype, count),
                                  call.dense(2, dtype, count), rows, cols);
}

/// Labels may be of either integer type.
DType label_of(Call& call) { return call.block(2).dtype == DType::Int32 ? DType::Int32 : DType::Int64; }

/// (rows, cols)
void nll(Call& call) {
  const size_t rows = call.size(0), cols = call.size(1);
  const DType dtype = float_of(call), label = label_of(call);
  call.kernels().nll(dtype, call.dense(0, dtype, rows), call.dense(1, dtype, area(rows, cols)), label,
                     call.dense(2, label, rows), rows, cols);
}

/// (rows, cols)
void nll_grad(Call& call) {
  const size_t rows = call.size(0), cols = call.size(1);
  const DType dtype = float_of(call), label = label_of(call);
  call.kernels().nll_grad(dtype, call.dense(0, dtype, area(rows, cols)), call.dense(1, dtype, rows), label,
                          call.dense(2, label, rows), rows, cols);
}

/// (rows, cols, ignored label, smoothing); operands: an output, scores, labels, what is kept, weight, which may be
/// absent
tensor::CrossEntropy cross_entropy_of(Call& call, DType dtype) {
  tensor::CrossEntropy x{};
  x.rows = call.size(0);
  x.cols = call.size(1);
  const double ignored = call.number(2);
  // No label that is ignored can be what int64 does not hold.
  x.ignored = std::abs(ignored) < 0x1p63 ? static_cast<int64_t>(ignored) : std::numeric_limits<int64_t>::min();
  x.smoothing = call.number(3);
  x.label = label_of(call);
  x.scores = call.dense(1, dtype, area(x.rows, x.cols));
  x.labels = call.dense(2, x.label, x.rows);
  x.kept = call.dense(3, dtype, area(2, x.rows));
  if (call.has(4)) x.weight = call.dense(4, dtype, x.cols);
  return x;
}

/// The first output: losses; operand 5, which may be absent: counts
void cross_entropy(Call& call) {
  const DType dtype = float_of(call);
  tensor::CrossEntropy x = cross_entropy_of(call, dtype);
  x.losses = call.dense(0, dtype, x.rows);
  if (call.has(5)) x.counts = call.dense(5, dtype, x.rows);
  call.kernels().cross_entropy(dtype, x);
}

/// (…, whether each row has a gradient of its own); the first output: gradient of the scores; operands 5 and 6:
/// gradient of the losses, divisor
void cross_entropy_grad(Call& call) {
  const DType dtype = float_of(call);
  tensor::CrossEntropyGrad g{};
  g.forward = cross_entropy_of(call, dtype);
  g.is_per_row = call.flag(4);
  g.grad_scores = call.dense(0, dtype, area(g.forward.rows, g.forward.cols));
  g.grad = call.dense(5, dtype, g.is_per_row ? g.forward.rows : 1);
  if (call.has(6)) g.divisor = call.dense(6, dtype, 1);
  g.number = call.value(6);
  call.kernels().cross_entropy_grad(dtype, g);
}

tensor::LookupSizes lookup_sizes(Call& call) {
  return {call.size(0), call.size(1), call.size(2), call.size(3), call.flag(4)};
}
size_t long_count(const tensor::LookupSizes& x) { return area(area(x.outer, x.size), x.inner); }
size_t short_count(const tensor::LookupSizes& x) { return area(area(x.outer, x.count), x.inner); }
const int64_t* index_of(Call& call, const tensor::LookupSizes& x) {
  const size_t count = x.per_element ? short_count(x) : x.count;
  const int64_t* index = call.indices(2, count);
  if (!call.is_on_host()) return index;  // the kernels look at each themselves
  for (size_t i = 0; i < count; i++) {
    if (index[i] < 0 || static_cast<size_t>(index[i]) >= x.size)
      throw std::out_of_range("lookup: an index is out of range.");
  }
  return index;
}

/// (outer, count, size, inner, one index per element)
void lookup(Call& call) {
  const auto x = lookup_sizes(call);
  const DType dtype = call.block(0).dtype;
  call.kernels().lookup(dtype, call.dense(0, dtype, short_count(x)), call.dense(1, dtype, long_count(x)),
                        index_of(call, x), x);
}

/// (outer, count, size, inner, one index per element)
void scatter_add(Call& call) {
  const auto x = lookup_sizes(call);
  const DType dtype = call.block(0).dtype;
  call.kernels().scatter_add(dtype, call.dense(0, dtype, long_count(x)), call.dense(1, dtype, short_count(x)),
                             index_of(call, x), x);
}

/// (outer, size, inner, from the end)
void cumsum(Call& call) {
  const size_t outer = call.size(0), size = call.size(1), inner = call.size(2), count = area(area(outer, size), inner);
  const DType dtype = call.block(0).dtype;
  call.kernels().cumsum(dtype, call.dense(0, dtype, count), call.dense(1, dtype, count), outer, size, inner,
                        call.flag(3));
}

/// (rows, cols, how many of each row, descending); operands: values, indices, input
void sort(Call& call) {
  const size_t rows = call.size(0), cols = call.size(1), count = std::min(call.size(2), cols);
  const DType dtype = call.block(0).dtype;
  call.kernels().sort(dtype, call.dense(0, dtype, area(rows, count)), call.indices(1, area(rows, count)),
                      call.dense(2, dtype, area(rows, cols)), rows, cols, count, call.flag(3));
}

/// (batch, rows, cols, diagonal, upper)
void triangle(Call& call) {
  const size_t batch = call.size(0), rows = call.size(1), cols = call.size(2), count = area(area(batch, rows), cols);
  const DType dtype = call.block(0).dtype;
  call.kernels().triangle(dtype, call.dense(0, dtype, count), call.dense(1, dtype, count), batch, rows, cols,
                          call.integer(3), call.flag(4));
}

}  // namespace

void define_function(napi_env env, napi_value exports, TensorState* state, const char* name, napi_callback callback) {
  napi_value function;
  if (napi_create_function(env, name, NAPI_AUTO_LENGTH, callback, state, &function) != napi_ok ||
      napi_set_named_property(env, exports, name, function) != napi_ok) {
    throw Napi::Error::New(env);
  }
}

void define_kernels(napi_env env, napi_value exports, TensorState* state) {
  const auto define = [&](const char* name, napi_callback callback) {
    define_function(env, exports, state, name, callback);
  };
  define("map", &entry<map>);
  define("copy", &entry<copy>);
  define("reduce", &entry<reduce>);
  define("argReduce", &entry<arg_reduce>);
  define("matmul", &entry<matmul>);
  define("logSoftmax", &entry<log_softmax>);
  define("logSoftmaxGrad", &entry<log_softmax_grad>);
  define("nll", &entry<nll>);
  define("nllGrad", &entry<nll_grad>);
  define("crossEntropy", &entry<cross_entropy>);
  define("crossEntropyGrad", &entry<cross_entropy_grad>);
  define("lookup", &entry<lookup>);
  define("scatterAdd", &entry<scatter_add>);
  define("cumsum", &entry<cumsum>);
  define("sort", &entry<sort>);
  define("triangle", &entry<triangle>);
}

}  // namespace ringwise::node
