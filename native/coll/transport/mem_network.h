// Links between ranks that live in one process, each in a thread of its own or all in one: the rings of shared memory,
// on the heap. For tests and for checking plans with many virtual ranks; no thread sleeps here, so none is woken.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <vector>

#include "coll/engine/execution.h"
#include "coll/transport/shm_link.h"

namespace ringwise::coll {

class MemNetwork {
 public:
  /// `capacity` in bytes is what each direction of a link holds: a multiple of kAlign.
  MemNetwork(int size, size_t capacity) : capacity_(capacity), links_(size) {
    for (Links& links : links_) links.resize(size);
  }

  /// Joins two ranks, unless they are already. Not while links are in use.
  void connect(int a, int b);

  /// The links of `rank`; null where nothing was connected.
  Links& links(int rank) { return links_[rank]; }

 private:
  struct FreeRing {
    void operator()(ShmRing* ring) const;
  };

  ShmRing* add_ring();

  size_t capacity_;
  std::atomic<uint32_t> never_sleeps_{0};
  std::vector<std::unique_ptr<ShmRing, FreeRing>> rings_;
  std::vector<Links> links_;  // by rank; goes before the rings
};

}  // namespace ringwise::coll
