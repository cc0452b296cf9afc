// A link between two processes of one host: a pair of single-producer, single-consumer rings in a shared memory
// segment. Head and tail count bytes since the start and never wrap in practice (2^64).
//
// Sleep protocol: a rank that is about to wait in the kernel sets its `sleeping` word, then looks once more at all
// rings. A rank that has moved bytes looks at the peer's word afterwards, and rings the peer's doorbell if it is set.
// All four accesses are sequentially consistent, so at least one of the two ranks sees what the other has written.
#pragma once

#include <atomic>
#include <cstdint>

#include "coll/transport/link.h"

namespace ringwise::coll {

struct ShmRing {
  alignas(128) std::atomic<uint64_t> head;  // written by the producer
  alignas(128) std::atomic<uint64_t> tail;  // written by the consumer
  // `capacity` bytes of data follow at offset sizeof(ShmRing)
  std::byte* data() { return reinterpret_cast<std::byte*>(this) + sizeof(ShmRing); }
};
static_assert(sizeof(ShmRing) == 256);
static_assert(std::atomic<uint64_t>::is_always_lock_free);

class ShmLink final : public Link {
 public:
  /// Wakes sleeping peers. The group implements it.
  class Doorbell {
   public:
    virtual ~Doorbell() = default;
    virtual void ring(int peer) = 0;
  };

  ShmLink(ShmRing* outgoing, ShmRing* incoming, size_t capacity, std::atomic<uint32_t>* peer_sleeping, int peer,
          Doorbell* doorbell)
      : out_(outgoing),
        in_(incoming),
        capacity_(capacity),
        peer_sleeping_(peer_sleeping),
        peer_(peer),
        doorbell_(doorbell) {}

  using Link::send;
  size_t send(const std::byte* data, size_t bytes) override;
  size_t receive(std::byte* data, size_t bytes) override;
  std::span<const std::byte> peek(size_t bytes) override;
  void consume(size_t bytes) override;
  bool ended() const override { return true; }  // all bytes that a peer wrote are visible before its end is known

 private:
  void wake_peer();

  ShmRing* out_;
  ShmRing* in_;
  size_t capacity_;
  std::atomic<uint32_t>* peer_sleeping_;
  int peer_;
  Doorbell* doorbell_;
};

}  // namespace ringwise::coll
