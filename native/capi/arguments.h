// Checks the arguments of verbs. A check that fails throws Refused.
#pragma once

#include <cstddef>
#include <vector>

#include "coll/op.h"

namespace ringwise::capi {

DType checked_dtype(int dtype);

/// Returns `op`, and checks that it is defined for `dtype`.
coll::ReduceOp checked_reduce_op(int op, DType dtype);

/// Returns `wire`, and checks that it supports `op` on `dtype`.
coll::Wire checked_wire(int wire, coll::ReduceOp op, DType dtype);

void check_root(int root, int size);
void check_peer(int peer, int rank, int size);
void check_tag(int tag);

/// Returns the entries of `counts`; empty if it is null.
std::vector<size_t> copied_counts(const size_t* counts, int size);

/// Returns the number of elements of all parts together. If `parts` is empty, each part has `count` elements. Checks
/// that memory can hold them.
size_t total_of(const std::vector<size_t>& parts, size_t count, int size, DType dtype);

/// Returns `memory`, and checks that it is not null if `count` is not 0.
const std::byte* checked_memory(const char* name, const void* memory, size_t count);
std::byte* checked_memory(const char* name, void* memory, size_t count);

/// Checks that two buffers of one call do not overlap.
void check_separate(const char* name, const void* memory, size_t bytes, const char* other_name, const void* other,
                    size_t other_bytes);

}  // namespace ringwise::capi
