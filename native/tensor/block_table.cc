#include "tensor/block_table.h"

#include <new>
#include <utility>

namespace ringwise::tensor {

int32_t BlockTable::add(Block block) {
  if (free_.empty()) {
    if (slots_.size() > kSlotMask) throw std::bad_alloc();  // all kSlotMask + 1 indices are in use
    free_.reserve(slots_.size() + 1);                       // so that the push_back() of remove() never allocates
    slots_.emplace_back();
    free_.push_back(static_cast<uint32_t>(slots_.size() - 1));
  }
  const uint32_t index = free_.back();
  free_.pop_back();
  Slot& slot = slots_[index];
  // Generations run from 1 to kMaxGeneration and start again, so a handle is always positive.
  constexpr uint32_t kMaxGeneration = (1u << (31 - kSlotBits)) - 1;
  slot.generation = slot.generation % kMaxGeneration + 1;
  slot.handle = static_cast<int32_t>((slot.generation << kSlotBits) | index);
  slot.block = std::move(block);
  bytes_ += slot.block.count * byte_size(slot.block.dtype);
  return slot.handle;
}

bool BlockTable::remove(int32_t handle) {
  const Block* block = find(handle);
  if (block == nullptr) return false;
  bytes_ -= block->count * byte_size(block->dtype);
  const uint32_t index = static_cast<uint32_t>(handle) & kSlotMask;
  slots_[index].handle = 0;
  slots_[index].block = Block{};  // drops the table's reference to the memory
  free_.push_back(index);
  return true;
}

}  // namespace ringwise::tensor
