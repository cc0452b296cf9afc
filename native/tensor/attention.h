// The operands of the attention kernels that have strides. Rows are dense and lie `row` elements apart, so heads are
// read and written inside of packed projections.
#pragma once

#include <cstddef>

#include "base/dtype.h"

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

}  // namespace ringwise::tensor
