// Memory of tensors, named by integer handles.
//
// Bytes are shared: a handle holds one reference, and whoever lends the memory out (the ArrayBuffer that JavaScript
// sees) holds another through `keeper`. `remove` therefore never takes memory away from under a live view; the bytes
// go when the last holder goes. A table belongs to one thread. Keepers may be dropped on any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "tensor/kernels.h"

namespace ringwise::tensor {

/// Bytes that `allocate` gave out and that somebody still holds. Outlives the table: keepers share it.
struct MemoryCount {
  std::atomic<int64_t> bytes{0};
  std::atomic<int64_t> pieces{0};
};

/// 64-byte aligned memory that is not cleared; never null. Throws std::bad_alloc.
std::shared_ptr<void> allocate(size_t bytes, const std::shared_ptr<MemoryCount>& count);

struct Block {
  std::shared_ptr<void> keeper;  // keeps `data` valid: the bytes themselves, or what they are a part of
  void* data = nullptr;
  DType dtype = DType::Float32;
  size_t count = 0;  // elements
};

class BlockTable {
 public:
  /// Handles are positive and fit into 31 bits. Throws std::bad_alloc, also when 2^20 blocks are alive.
  int32_t add(Block block);
  /// Null when the handle was never given out or has been removed.
  const Block* find(int32_t handle) const {
    const uint32_t slot = static_cast<uint32_t>(handle) & kSlotMask;
    if (slot >= slots_.size() || slots_[slot].handle != handle) return nullptr;
    return &slots_[slot].block;
  }
  bool remove(int32_t handle);
  size_t size() const { return slots_.size() - free_.size(); }

 private:
  // The upper bits of a handle count how often its slot was used, so that a stale handle is noticed.
  static constexpr int kSlotBits = 20;
  static constexpr uint32_t kSlotMask = (1u << kSlotBits) - 1;
  struct Slot {
    int32_t handle = 0;  // 0 while free
    uint32_t uses = 0;
    Block block;
  };
  std::vector<Slot> slots_;
  std::vector<uint32_t> free_;
};

}  // namespace ringwise::tensor
