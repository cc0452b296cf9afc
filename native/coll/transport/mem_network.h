// Links between the ranks of one process, in one or several threads. They are ShmLinks whose rings are on the heap.
// Used by tests and to check plans with many virtual ranks. No thread sleeps here, so the links wake none.
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
  /// Makes a network of `size` ranks without links. Each direction of a link will hold `capacity` bytes, a multiple of
  /// kAlign.
  MemNetwork(int size, size_t capacity) : capacity_(capacity), links_(size) {
    for (Links& links : links_) links.resize(size);
  }

  /// Connects two ranks if they are not connected yet. Must not be called while links are in use.
  void connect(int a, int b);

  /// Returns the links of `rank`, with null for ranks that are not connected to it.
  Links& links(int rank) { return links_[rank]; }

 private:
  struct FreeRing {
    void operator()(ShmRing* ring) const;
  };

  ShmRing* add_ring();

  size_t capacity_;
  std::atomic<uint32_t> never_sleeps_{0};
  std::vector<std::unique_ptr<ShmRing, FreeRing>> rings_;
  std::vector<Links> links_;  // by rank; destroyed before the rings
};

}  // namespace ringwise::coll
