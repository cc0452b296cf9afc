// Handshakes that are still to come from ranks that this one did not wait for. A rank that only sends in an operation is
// done once it has sent. What the others say of that operation comes later, in the stream of whatever they send, and is
// compared before anything newer from the same rank is looked at.
//
// Used by whoever owns the engine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "coll/handshake/signature.h"
#include "coll/transport/link.h"

namespace ringwise::coll {

class PendingHandshakes {
 public:
  /// So many of each rank: a sender is never further ahead. They are 32 KiB, for which every link has room, so that nobody
  /// is held up by what this rank has not read yet.
  static constexpr size_t kPerPeer = 512;

  /// Before anything else; keeps the pending handshakes.
  void resize(int ranks) { peers_.resize(ranks); }

  size_t from(int peer) const { return peers_[peer].count; }
  bool any() const { return total_ > 0; }
  /// Until when it makes sense to wait for them: the latest deadline of their operations.
  int64_t deadline_ns() const { return deadline_ns_; }

  /// `expected` is to come from `peer`, after what it owes already. There must be room.
  void add(int peer, const Signature& expected, int64_t deadline_ns);
  /// Compares what has come from `peer`; true if it owes nothing more. Throws Failure when it runs another operation.
  bool settle(int rank, int peer, Link& link);
  /// Nothing will come from `peer`.
  void forget(int peer);

 private:
  struct Peer {
    std::vector<Signature> ring;  // grows as far as is needed
    size_t first = 0;
    size_t count = 0;
  };

  std::vector<Peer> peers_;  // by rank
  size_t total_ = 0;
  int64_t deadline_ns_ = 0;
};

}  // namespace ringwise::coll
