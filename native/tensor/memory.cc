#include "tensor/memory.h"

#include <new>
#include <utility>

namespace ringwise::tensor {

namespace {
constexpr std::align_val_t kAlignment{64};
}

std::shared_ptr<void> allocate(size_t bytes, const std::shared_ptr<MemoryCount>& count) {
  void* data = ::operator new(bytes > 0 ? bytes : 1, kAlignment);
  count->bytes += static_cast<int64_t>(bytes);
  count->pieces += 1;
  // shared_ptr calls the deleter even when it cannot allocate its own record.
  return std::shared_ptr<void>(data, [count, bytes](void* p) {
    ::operator delete(p, kAlignment);
    count->bytes -= static_cast<int64_t>(bytes);
    count->pieces -= 1;
  });
}

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
  constexpr uint32_t kUseMask = (1u << (31 - kSlotBits)) - 1;
  slot.uses = slot.uses % kUseMask + 1;  // 1 … kUseMask, so that no handle is 0
  slot.handle = static_cast<int32_t>(slot.uses << kSlotBits | index);
  slot.block = std::move(block);
  return slot.handle;
}

bool BlockTable::remove(int32_t handle) {
  if (find(handle) == nullptr) return false;
  const uint32_t index = static_cast<uint32_t>(handle) & kSlotMask;
  slots_[index].handle = 0;
  slots_[index].block = Block{};
  free_.push_back(index);
  return true;
}

}  // namespace ringwise::tensor
