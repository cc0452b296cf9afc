// Sorting, for kernels that need sorted indices.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/cuda/launch/arguments.h"

namespace ringwise::tensor::cuda {

/// Returns the bytes of an entry (kernels/sort.cu): a narrow one has a key and a position below 2^32.
inline size_t entry_bytes(bool is_narrow) { return is_narrow ? 8 : 16; }

/// Sorts rows. Writes the first `count` elements of each row to `values`, and their positions to `indices`; or, if
/// `values` is null, their entries to `to`. The caller sets these, a, rows, cols, inner, dtype, and descending or limit.
void sort_rows(SortArguments x, int64_t count, bool is_narrow);

}  // namespace ringwise::tensor::cuda
