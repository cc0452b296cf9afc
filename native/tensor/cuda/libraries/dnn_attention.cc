// Attention by cuDNN. The operations below, in this order and with these types, are the patterns for which cuDNN has
// fused kernels, which do not store the scores in memory. The saved log Σ exp of each query is the same as that of our
// own kernels, so either can compute the gradient of the other's result.
#include <limits>
#include <utility>

#include "tensor/cuda/launch/kernels.h"
#include "tensor/cuda/libraries/dnn_kernels.h"
#include "tensor/cuda/libraries/dnn_plans.h"

namespace ringwise::tensor::cuda {

namespace {

using Dims = std::vector<int64_t>;

enum Id : int64_t {
  kQ = 1,
  kK,
  kV,
  kOut,
  kLse,
  kGradOut,
  kGradQ,
  kGradK,
  kGradV,
  kScale,
  kHidden,
  kOne,
  kDots,
  kQuerySums,
  kFirstOfGraph
};

struct Sizes {
  int64_t batch, heads, queries, keys, width, value_width;
};
Sizes sizes_of(const Attention& a) {
  return {static_cast<int64_t>(a.batch), static_cast<int64_t>(a.heads), static_cast<int64_t>(a.queries),
          static_cast<int64_t>(a.keys),  static_cast<int64_t>(a.width), static_cast<int64_t>(a.value_width)};
}

/// Describes the tensors of a graph, [batch, heads, …, …].
struct Tensors {
  Sizes s;
  int stored;  // dnn::DATA_…
  int64_t next = kFirstOfGraph;

  DnnTensor rows(int64_t id, const HeadRows& at, int64_t count, int64_t width) const {
    return {id, stored, {s.batch, s.heads, count, width}, {at.batch, at.head, at.row, 1}};
  }
  /// Returns x with its last two dimensions swapped.
  static DnnTensor turned(DnnTensor x) {
    std::swap(x.dims[2], x.dims[3]);
    std::swap(x.strides[2], x.strides[3]);
    return x;
  }
  DnnTensor dense(int64_t id, int type, int64_t rows, int64_t cols) const {
    return {id, type, {s.batch, s.heads, rows, cols}, {s.heads * rows * cols, rows * cols, cols, 1}};
  }
  /// Returns a tensor with one number per query.
  DnnTensor column(int64_t id) const { return dense(id, dnn::DATA_FLOAT, s.queries, 1); }
  static DnnTensor number(int64_t id) {
    DnnTensor x{id, dnn::DATA_FLOAT, {1, 1, 1, 1}, {1, 1, 1, 1}};
    x.is_by_value = true;
    return x;
  }
  /// Returns an intermediate tensor, which exists only inside the graph.
  DnnTensor inner(int type, int64_t rows, int64_t cols) {
    DnnTensor x = dense(next++, type, rows, cols);
    x.is_virtual = true;
    return x;
  }
  DnnTensor scores(int type = dnn::DATA_FLOAT) { return inner(type, s.queries, s.keys); }
};

/// Adds scale · q kᵀ to the graph.
DnnTensor scores_of(DnnGraph& graph, Tensors& t, const Attention& a) {
  const DnnTensor products = t.scores(), scaled = t.scores(), scale = t.number(kScale);
  graph.multiply(products, t.rows(kQ, a.q, t.s.queries, t.s.width), t.turned(t.rows(kK, a.k, t.s.keys, t.s.width)));
  graph.map(dnn::POINTWISE_MUL, scaled, products, &scale);
  return scaled;
}

/// Replaces scores by −∞ where the causal mask hides a key.
DnnTensor masked(DnnGraph& graph, Tensors& t, const Attention& a, const DnnTensor& scores) {
  if (!a.causal) return scores;
  const DnnTensor row = t.scores(dnn::DATA_INT32), col = t.scores(dnn::DATA_INT32),
                  is_seen = t.scores(dnn::DATA_BOOLEAN), result = t.scores();
  const DnnTensor hidden = t.number(kHidden);
  graph.map(dnn::POINTWISE_GEN_INDEX, row, scores, nullptr, nullptr, 2);
  graph.map(dnn::POINTWISE_GEN_INDEX, col, scores, nullptr, nullptr, 3);
  graph.map(dnn::POINTWISE_CMP_GE, is_seen, row, &col);
  graph.map(dnn::POINTWISE_BINARY_SELECT, result, scores, &hidden, &is_seen);
  return result;
}

Tensors tensors_of(DType dtype, const Attention& a) { return {sizes_of(a), dnn_type(dtype)}; }

/// Returns whether the fused kernels of the installed version may compute heads of these widths. Which devices support
/// heads wider than 128 differs by version and direction; the library refuses the others.
bool has_kernels_for(size_t width, size_t value_width) {
  const size_t version = cudnn().cudnnGetVersion ? cudnn().cudnnGetVersion() : 0;
  if (version == 91000 || version == 91001) return false;  // the vendor's frontend refuses these: wrong results
  const auto fits = [](size_t cols, size_t most) { return cols % 8 == 0 && cols >= 8 && cols <= most; };
  if (width == value_width && version >= 91100) return fits(width, 256);
  return fits(width, 128) && fits(value_width, 128);
}

/// Returns whether the fused kernels support this attention: 16-bit floats, no mask except the causal one, no dropout,
/// rows of a multiple of 16 bytes, at least two queries and two keys. Alignments are checked by is_aligned().
bool is_supported(DType dtype, const Attention& a) {
  return is_half(dtype) && !a.mask.data && a.dropout == 0 && a.queries > 1 && a.keys > 1 && a.batch * a.heads > 0 &&
         dnn_alignment(a.lse) == 16 && has_kernels_for(a.width, a.value_width);
}
bool is_aligned(const HeadRows& rows) {
  return dnn_alignment(rows.data) == 16 && rows.batch % 8 == 0 && rows.head % 8 == 0 && rows.row % 8 == 0;
}

/// Appends the strides to a key.
void list(DnnPlans::Key& key, std::initializer_list<HeadRows> all) {
  for (const HeadRows& rows : all) key.insert(key.end(), {rows.batch, rows.head, rows.row});
}
DnnPlans::Key key_of(int64_t kind, DType dtype, const Attention& a) {
  const Sizes s = sizes_of(a);
  DnnPlans::Key key{kind,         static_cast<int64_t>(dtype), a.causal, s.batch, s.heads, s.queries, s.keys, s.width,
                    s.value_width};
  list(key, {a.q, a.k, a.v, a.out});
  return key;
}

using Bindings = std::vector<std::pair<int64_t, void*>>;

/// Returns the bindings that both graphs have. The library accepts only tensors that are in the graph.
Bindings bindings_of(const Attention& a, float* scale, float* hidden) {
  Bindings bindings{{kQ, a.q.data}, {kK, a.k.data}, {kV, a.v.data}, {kOut, a.out.data}, {kLse, a.lse}, {kScale, scale}};
  if (a.causal) bindings.emplace_back(kHidden, hidden);
  return bindings;
}

/// Starts filling with zeros.
void clear(void* floats, size_t count) {
  double zero = 0;
  Walk walk;
  walk.rank = 1;
  walk.operands = 2;
  walk.shape[0] = count;
  walk.operand[0].data = static_cast<char*>(floats);
  walk.operand[0].strides[0] = 1;
  walk.operand[1].data = reinterpret_cast<char*>(&zero);
  walk.operand[1].dtype = DType::Float64;
  walk.operand[1].is_number = true;
  walk.operand[1].strides[0] = 0;
  copy({walk});
}

}  // namespace

DnnGraph attention_graph(const Attention& a) {
  const DType dtype = a.dtype;
  DnnGraph graph;
  Tensors t = tensors_of(dtype, a);
  const DnnTensor scores = masked(graph, t, a, scores_of(graph, t, a));
  const DnnTensor lse = t.column(kLse), most = t.inner(dnn::DATA_FLOAT, t.s.queries, 1),
                  sum = t.inner(dnn::DATA_FLOAT, t.s.queries, 1), log = t.inner(dnn::DATA_FLOAT, t.s.queries, 1);
  const DnnTensor less = t.scores(), powers = t.scores(), weights = t.scores(t.stored);
  graph.reduce(dnn::REDUCE_TENSOR_MAX, most, scores);
  graph.map(dnn::POINTWISE_SUB, less, scores, &most);
  graph.map(dnn::POINTWISE_EXP, powers, less);
  graph.reduce(dnn::REDUCE_TENSOR_ADD, sum, powers);
  graph.map(dnn::POINTWISE_LOG, log, sum);
  graph.map(dnn::POINTWISE_ADD, lse, most, &log);
  graph.map(dnn::POINTWISE_DIV, weights, powers, &sum);
  graph.multiply(t.rows(kOut, a.out, t.s.queries, t.s.value_width), weights,
                 t.rows(kV, a.v, t.s.keys, t.s.value_width));
  return graph;
}

DnnGraph attention_grad_graph(const AttentionGrad& g) {
  const DType dtype = g.dtype;
  const Attention& a = g;
  DnnGraph graph;
  Tensors t = tensors_of(dtype, a);
  const Sizes& s = t.s;
  const DnnTensor out = t.rows(kOut, a.out, s.queries, s.value_width),
                  grad_out = t.rows(kGradOut, g.grad_out, s.queries, s.value_width);
  const DnnTensor lse = t.column(kLse), one = t.number(kOne), scale = t.number(kScale);
  // dots = Σ grad_out · out for each query.
  const DnnTensor products = t.inner(dnn::DATA_FLOAT, s.queries, s.value_width),
                  sum = t.inner(dnn::DATA_FLOAT, s.queries, 1), dots = t.column(kDots);
  graph.map(dnn::POINTWISE_MUL, products, grad_out, &out);
  graph.reduce(dnn::REDUCE_TENSOR_ADD, sum, products);
  graph.map(dnn::POINTWISE_MUL, dots, sum, &one);
  // Recompute the weights; then grad_v = weightsᵀ · grad_out.
  const DnnTensor less = t.scores(), weights = t.scores();
  graph.map(dnn::POINTWISE_SUB, less, scores_of(graph, t, a), &lse);
  graph.map(dnn::POINTWISE_EXP, weights, masked(graph, t, a, less));
  const DnnTensor weights_turned = Tensors::turned(t.scores(t.stored));
  graph.reshape(weights_turned, weights);
  graph.multiply(t.rows(kGradV, g.grad_v, s.keys, s.value_width), weights_turned, grad_out);
  // grad_scores = weights · (grad_out · vᵀ − dots) · scale
  const DnnTensor grad_weights = t.scores(), centred = t.scores(), weighted = t.scores(),
                  grad_scores = t.scores(t.stored);
  graph.multiply(grad_weights, grad_out, t.turned(t.rows(kV, a.v, s.keys, s.value_width)));
  graph.map(dnn::POINTWISE_SUB, centred, grad_weights, &dots);
  graph.map(dnn::POINTWISE_MUL, weighted, centred, &weights);
  graph.map(dnn::POINTWISE_MUL, grad_scores, weighted, &scale);
  const DnnTensor grad_scores_turned = Tensors::turned(t.scores(t.stored));
  graph.reshape(grad_scores_turned, grad_scores);
  graph.multiply(t.rows(kGradK, g.grad_k, s.keys, s.width), grad_scores_turned, t.rows(kQ, a.q, s.queries, s.width));
  // Several thread blocks add to the gradient of a query, so it is summed in float32.
  DnnTensor k = t.rows(t.next++, a.k, s.keys, s.width);
  k.is_virtual = true;
  const DnnTensor query_sums = t.dense(kQuerySums, dnn::DATA_FLOAT, s.queries, s.width);
  graph.reshape(k, t.turned(t.rows(kK, a.k, s.keys, s.width)));
  graph.multiply(query_sums, grad_scores, k);
  graph.map(dnn::POINTWISE_IDENTITY, t.rows(kGradQ, g.grad_q, s.queries, s.width), query_sums);
  return graph;
}

bool attend_by_library(const Attention& a) {
  const DType dtype = a.dtype;
  if (!is_supported(dtype, a) || !is_aligned(a.q) || !is_aligned(a.k) || !is_aligned(a.v) || !is_aligned(a.out))
    return false;
  Device& device = current_device();
  DnnPlans* plans = DnnPlans::of(device);
  auto scale = static_cast<float>(a.scale), hidden = -std::numeric_limits<float>::infinity();
  return plans &&
         plans->run(
             device, key_of(1, dtype, a), {true}, [&] { return attention_graph(a); }, bindings_of(a, &scale, &hidden));
}

bool attend_back_by_library(const AttentionGrad& g) {
  const DType dtype = g.dtype;
  const Attention& a = g;
  bool is_good = is_supported(dtype, a);
  for (const HeadRows& rows : {a.q, a.k, a.v, a.out, g.grad_out, g.grad_q, g.grad_k, g.grad_v})
    is_good = is_good && is_aligned(rows);
  if (!is_good) return false;
  Device& device = current_device();
  DnnPlans* plans = DnnPlans::of(device);
  if (!plans) return false;
  DnnPlans::Key key = key_of(2, dtype, a);
  list(key, {g.grad_out, g.grad_q, g.grad_k, g.grad_v});
  const size_t queries = a.batch * a.heads * a.queries, dots_bytes = (queries * sizeof(float) + 15) / 16 * 16,
               sums_bytes = queries * a.width * sizeof(float);
  auto* memory = static_cast<char*>(device.allocate(dots_bytes + sums_bytes));
  auto scale = static_cast<float>(a.scale), hidden = -std::numeric_limits<float>::infinity(), one = 1.0f;
  Bindings bindings = bindings_of(a, &scale, &hidden);
  bindings.insert(bindings.end(), {{kGradOut, g.grad_out.data},
                                   {kGradQ, g.grad_q.data},
                                   {kGradK, g.grad_k.data},
                                   {kGradV, g.grad_v.data},
                                   {kOne, &one},
                                   {kDots, memory},
                                   {kQuerySums, memory + dots_bytes}});
  bool is_done = false;
  try {
    clear(memory + dots_bytes, queries * a.width);
    is_done = plans->run(device, key, {true}, [&] { return attention_grad_graph(g); }, bindings);
  } catch (...) {
    device.free(memory);
    throw;
  }
  device.free(memory);
  return is_done;
}

}  // namespace ringwise::tensor::cuda
