// What a verb's arguments have to be, checked in one place. All functions throw Refused.
#pragma once

#include <cstddef>
#include <vector>

#include "coll/op.h"

namespace ringwise::capi {

DType checked_dtype(int dtype);

/// Also that `op` means something on `dtype`.
coll::ReduceOp checked_reduce_op(int op, DType dtype);

/// Also that it takes `op` of `dtype`.
coll::Wire checked_wire(int wire, coll::ReduceOp op, DType dtype);

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

/// Two buffers of one call.
void check_separate(const char* name, const void* memory, size_t bytes, const char* other_name, const void* other,
                    size_t other_bytes);

}  // namespace ringwise::capi
