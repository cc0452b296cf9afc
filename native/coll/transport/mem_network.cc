#include "coll/transport/mem_network.h"

#include <cstdlib>
#include <new>

namespace ringwise::coll {

void MemNetwork::FreeRing::operator()(ShmRing* ring) const {
  ring->~ShmRing();
  ::operator delete(ring, std::align_val_t{alignof(ShmRing)});
}

ShmRing* MemNetwork::add_ring() {
  void* memory = ::operator new(sizeof(ShmRing) + capacity_, std::align_val_t{alignof(ShmRing)});
  return rings_.emplace_back(new (memory) ShmRing{}).get();
}

void MemNetwork::connect(int a, int b) {
  if (links_[a][b]) return;
  ShmRing* there = add_ring();
  ShmRing* back = add_ring();
  links_[a][b] = std::make_unique<ShmLink>(there, back, capacity_, &never_sleeps_, b, nullptr);
  links_[b][a] = std::make_unique<ShmLink>(back, there, capacity_, &never_sleeps_, a, nullptr);
}

}  // namespace ringwise::coll
