// Sorting, for kernels that need sorted indices.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/cuda/launch/arguments.h"

namespace ringwise::tensor::cuda {

/// Returns the bytes of an entry (kernels/sort.cu): a narrow one has a key and a position below 2^32.
inline size_t entry_bytes(bool is_narrow) { return is_narrow ? 8 : 16; }

/// Sorts rows. Writes the first `count` elements of each row to `values`, and their positions to `indices`; or their
/// entries to `to`, if `values` is null. The caller sets these members of `x`, and a, rows, cols, inner, dtype, and
/// descending or limit (with fault).
void sort_rows(SortArguments x, int64_t count, bool is_narrow);

}  // namespace ringwise::tensor::cuda
