// Arguments of the attention kernels: softmax(scale * Q K^T + mask) V for every head of every batch, all of one type,
// float32 or float64. Rows are dense and lie `row` elements apart, so heads are read and written inside of packed
// projections.
#pragma once

#include <cstddef>

#include "base/dtype.h"
#include "tensor/random.h"

namespace ringwise::tensor {

/// [batch, heads, rows, width]; steps in elements.
struct HeadRows {
  char* data = nullptr;
  ptrdiff_t batch = 0, head = 0, row = 0;
};

/// [batch, heads, queries, keys]. Bool: false keeps a key from a query. The computing type: added to the scores.
struct AttentionMask {
  const char* data = nullptr;  // null: no mask
  DType dtype = DType::Bool;
  ptrdiff_t batch = 0, head = 0, row = 0, col = 0;
};

struct Attention {
  size_t batch, heads, queries, keys;
  size_t width;        // of queries and keys
  size_t value_width;  // of values and results
  double scale;
  bool causal;     // query i sees keys 0 … i
  double dropout;  // of probabilities; word (((b * heads + h) * queries + i) * keys + j) of the stream decides
  Stream stream;
  HeadRows q, k, v, out;
  void* lse;  // dense [batch, heads, queries]: log Σ exp(scores); +∞ where a query sees nothing, and its result is 0
  AttentionMask mask;
};

struct AttentionGrad {
  Attention forward;
  HeadRows grad_out, grad_q, grad_k, grad_v;  // the last three are written, not added to
};

}  // namespace ringwise::tensor
