#include "tensor/block_table.h"

#include <new>
#include <utility>

namespace ringwise::tensor {

int32_t BlockTable::add(Block block) {
  if (free_.empty()) {
    if (slots_.size() > kSlotMask) throw std::bad_alloc();
    free_.reserve(slots_.size() + 1);  // so that remove() cannot fail
    slots_.emplace_back();
    free_.push_back(static_cast<uint32_t>(slots_.size() - 1));
  }
  const uint32_t index = free_.back();
  free_.pop_back();
  Slot& slot = slots_[index];
  constexpr uint32_t kMostUses = (1u << (31 - kSlotBits)) - 1;
  slot.uses = slot.uses % kMostUses + 1;
  slot.handle = static_cast<int32_t>(slot.uses << kSlotBits | index);
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
  slots_[index].block = Block{};
  free_.push_back(index);
  return true;
}

}  // namespace ringwise::tensor
