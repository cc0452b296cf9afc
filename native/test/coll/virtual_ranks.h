// Runs one operation among virtual ranks on the calling thread, over links in memory. The order in which ranks advance
// is random, and links hold few bytes, so a plan that depends on luck or on buffers gets stuck.
#pragma once

#include <algorithm>
#include <random>
#include <vector>

#include "coll/transport/mem_network.h"
#include "test/check.h"

namespace ringwise::test {

struct VirtualRanks {
  coll::Hosts hosts;
  const coll::Algorithm* algorithm;
  size_t link_bytes = 128;

  /// Runs ops[rank] on every rank. Returns false if the ranks got stuck.
  bool run(const std::vector<coll::Op>& ops, uint64_t seed = 1) const {
    const int size = hosts.size();
    coll::MemNetwork network(size, link_bytes);
    std::vector<coll::Execution> ranks(size);
    std::vector<int> order(size);
    for (int rank = 0; rank < size; ++rank) {
      order[rank] = rank;
      for (int peer = 0; peer < rank; ++peer) network.connect(rank, peer);
      ranks[rank].begin(ops[rank], {rank, &hosts}, *algorithm);
    }
    std::mt19937_64 random(seed);
    for (bool moved = true; moved;) {
      moved = false;
      std::shuffle(order.begin(), order.end(), random);
      for (const int rank : order) moved |= ranks[rank].advance(network.links(rank));
    }
    return std::all_of(ranks.begin(), ranks.end(), [](const coll::Execution& rank) { return rank.done(); });
  }
};

/// Places `size` ranks on hosts: `per_host` ranks on each, or, if it is 0, two of every three ranks on the first host
/// and the third on the second.
inline coll::Hosts place_ranks(int size, int per_host) {
  std::vector<int> host_of(size);
  for (int rank = 0; rank < size; ++rank) host_of[rank] = per_host > 0 ? rank / per_host : (rank % 3 == 2 ? 1 : 0);
  return coll::Hosts(host_of);
}

}  // namespace ringwise::test
