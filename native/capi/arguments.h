// What a verb's arguments have to be, checked in one place. All functions throw Refused.
#pragma once

#include <cstddef>
#include <vector>

#include "coll/op.h"

namespace ringwise::capi {

DType checked_dtype(int dtype);

/// Also that `op` means something on `dtype`.
coll::ReduceOp checked_reduce_op(int op, DType dtype);

void check_root(int root, int size);
void check_peer(int peer, int rank, int size);
void check_tag(int tag);

/// The entries of `counts`, or nothing where it is null.
std::vector<size_t> copied_counts(const size_t* counts, int size);

/// Elements of all parts together; `parts` may be empty, then each has `count`. Checks that memory can hold them.
size_t total_of(const std::vector<size_t>& parts, size_t count, int size, DType dtype);

/// Memory of `count` elements.
const std::byte* checked_memory(const char* name, const void* memory, size_t count);
std::byte* checked_memory(const char* name, void* memory, size_t count);

void check_separate(const void* input, size_t input_bytes, const void* output, size_t output_bytes);

}  // namespace ringwise::capi
