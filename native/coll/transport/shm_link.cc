#include "coll/transport/shm_link.h"

#include <algorithm>
#include <cstring>

namespace ringwise::coll {

namespace {
// Larger transfers are published in pieces, so that the peer reads the first while the next is being written.
constexpr size_t kPiece = 32 * 1024;
}  // namespace

size_t ShmLink::send(const std::byte* data, size_t bytes) {
  const uint64_t head = out_->head.load(std::memory_order_relaxed);
  const size_t room = capacity_ - static_cast<size_t>(head - out_->tail.load());
  const size_t offset = head % capacity_;
  const size_t moved = std::min({bytes, room, capacity_ - offset, kPiece});
  if (moved == 0) return 0;
  std::memcpy(out_->data() + offset, data, moved);
  out_->head.store(head + moved);
  wake_peer();
  return moved;
}

std::span<const std::byte> ShmLink::peek(size_t bytes) {
  const uint64_t tail = in_->tail.load(std::memory_order_relaxed);
  const size_t arrived = static_cast<size_t>(in_->head.load() - tail);
  const size_t offset = tail % capacity_;
  return {in_->data() + offset, std::min({bytes, arrived, capacity_ - offset, kPiece})};
}

void ShmLink::consume(size_t bytes) {
  in_->tail.store(in_->tail.load(std::memory_order_relaxed) + bytes);
  wake_peer();
}

size_t ShmLink::receive(std::byte* data, size_t bytes) {
  const auto arrived = peek(bytes);
  if (arrived.empty()) return 0;
  std::memcpy(data, arrived.data(), arrived.size());
  consume(arrived.size());
  return arrived.size();
}

void ShmLink::wake_peer() {
  if (peer_sleeping_->load() != 0 && peer_sleeping_->exchange(0) != 0) doorbell_->ring(peer_);
}

}  // namespace ringwise::coll
