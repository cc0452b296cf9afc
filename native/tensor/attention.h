// The operands of the attention kernels that have strides. A row is dense, and rows lie `row` elements apart, so that
// heads can be read and written inside of packed projections.
#pragma once

#include <cstddef>

#include "base/dtype.h"

namespace ringwise::tensor {

/// A tensor [batch, heads, rows, width]. `batch`, `head` and `row` are strides in elements.
struct HeadRows {
  char* data = nullptr;
  ptrdiff_t batch = 0, head = 0, row = 0;
};

/// A mask [batch, heads, queries, keys], with strides in elements. In a mask of bool, false hides a key from a query.
/// Any other mask has the dtype of the queries and is added to the scores.
struct AttentionMask {
  const char* data = nullptr;  // null: no mask
  DType dtype = DType::Bool;
  ptrdiff_t batch = 0, head = 0, row = 0, col = 0;
};

}  // namespace ringwise::tensor
