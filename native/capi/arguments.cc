#include "capi/arguments.h"

#include <cstdint>

#include "capi/errors.h"

namespace ringwise::capi {

namespace {

using coll::ReduceOp;

bool is_reducible(ReduceOp op, DType dtype) {
  const bool floating = is_narrow(dtype) || dtype == DType::Float32 || dtype == DType::Float64;
  switch (op) {
    case ReduceOp::Sum:
    case ReduceOp::Prod: return dtype != DType::Bool;
    case ReduceOp::Min:
    case ReduceOp::Max: return true;
    case ReduceOp::Avg:
    case ReduceOp::PremulSum: return floating;
    case ReduceOp::Band:
    case ReduceOp::Bor:
    case ReduceOp::Bxor: return !floating;
  }
  return false;
}

}  // namespace

DType checked_dtype(int dtype) {
  if (dtype < 0 || dtype >= kDTypeCount) throw bad_dtype(dtype);
  return static_cast<DType>(dtype);
}

ReduceOp checked_reduce_op(int op, DType dtype) {
  if (op < 0 || op >= coll::kReduceOpCount) throw bad_reduce_op(op);
  if (!is_reducible(static_cast<ReduceOp>(op), dtype)) throw not_reducible(static_cast<ReduceOp>(op), dtype);
  return static_cast<ReduceOp>(op);
}

coll::Wire checked_wire(int number, ReduceOp op, DType dtype) {
  if (number < 0 || number >= coll::kWireCount) throw bad_wire(number);
  const auto wire = static_cast<coll::Wire>(number);
  const bool fits = wire == coll::Wire::Full || dtype == DType::Float32;
  if (!fits || (op != ReduceOp::Sum && op != ReduceOp::Avg)) throw wire_unused(wire, op, dtype);
  return wire;
}

void check_root(int root, int size) {
  if (root < 0 || root >= size) throw bad_peer("root", root, size);
}

void check_peer(int peer, int rank, int size) {
  if (peer < 0 || peer >= size) throw bad_peer("peer", peer, size);
  if (peer == rank) throw own_rank(rank);
}

void check_tag(int tag) {
  if (tag < 0) throw bad_tag(tag);
}

std::vector<size_t> copied_counts(const size_t* counts, int size) {
  if (counts == nullptr) return {};
  return {counts, counts + size};
}

size_t total_of(const std::vector<size_t>& parts, size_t count, int size, DType dtype) {
  const size_t most = PTRDIFF_MAX / byte_size(dtype);
  if (parts.empty()) {
    if (count > most / size) throw too_large(count);
    return count * size;
  }
  size_t total = 0;
  for (const size_t part : parts) {
    if (part > most - total) throw too_large(part);
    total += part;
  }
  return total;
}

const std::byte* checked_memory(const char* name, const void* memory, size_t count) {
  if (memory == nullptr && count > 0) throw null_memory(name);
  return static_cast<const std::byte*>(memory);
}

std::byte* checked_memory(const char* name, void* memory, size_t count) {
  if (memory == nullptr && count > 0) throw null_memory(name);
  return static_cast<std::byte*>(memory);
}

void check_separate(const char* name, const void* memory, size_t bytes, const char* other_name, const void* other,
                    size_t other_bytes) {
  if (bytes == 0 || other_bytes == 0) return;
  const auto one = reinterpret_cast<uintptr_t>(memory), two = reinterpret_cast<uintptr_t>(other);
  if (one < two + other_bytes && two < one + bytes) throw overlapping(name, other_name);
}

}  // namespace ringwise::capi
