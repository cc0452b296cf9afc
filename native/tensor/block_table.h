// Memory of tensors, named by integers that are cheap to pass from JavaScript. A table belongs to one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "tensor/kernels.h"

namespace ringwise::tensor {

struct Block {
  std::shared_ptr<void> keeper;  // keeps `data` valid as long as the block is in the table
  void* data = nullptr;
  DType dtype = DType::Float32;
  size_t count = 0;  // elements
  int device = -1;   // index of the CUDA device; -1: host memory
};

class BlockTable {
 public:
  /// Returns the block's handle, which is positive. Throws std::bad_alloc, also when 2^20 blocks are in the table.
  int32_t add(Block block);

  /// Returns null when the handle was never given out or has been removed.
  const Block* find(int32_t handle) const {
    const uint32_t slot = static_cast<uint32_t>(handle) & kSlotMask;
    if (handle <= 0 || slot >= slots_.size() || slots_[slot].handle != handle) return nullptr;
    return &slots_[slot].block;
  }

  /// Returns false when there is no such block.
  bool remove(int32_t handle);

  size_t size() const { return slots_.size() - free_.size(); }
  size_t bytes() const { return bytes_; }

 private:
  // A handle is the generation of its slot above the slot's index. A new generation begins whenever the slot is used
  // again, so a stale handle is noticed until its slot has been used 2,047 more times.
  static constexpr int kSlotBits = 20;
  static constexpr uint32_t kSlotMask = (1u << kSlotBits) - 1;
  struct Slot {
    int32_t handle = 0;  // 0 while the slot is free; handles of blocks are positive
    uint32_t generation = 0;
    Block block;
  };
  std::vector<Slot> slots_;
  std::vector<uint32_t> free_;
  size_t bytes_ = 0;
};

}  // namespace ringwise::tensor
