// Pending handshakes: those that this rank expects from peers but did not wait for. A rank that only sends in an
// operation ends the operation once it has sent. The peers' handshakes for that operation arrive later on the same
// links and are compared before newer data from the same peer is read.
//
// Used only by the thread that owns the engine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "coll/handshake/signature.h"
#include "coll/transport/link.h"

namespace ringwise::coll {

class PendingHandshakes {
 public:
  /// Most pending handshakes per peer, and so the most operations that a sender runs ahead. They take 32 KiB, for which
  /// every link has room, so unread handshakes never block a peer.
  static constexpr size_t kPerPeer = 512;

  /// Sets the number of ranks and keeps the pending handshakes. Call it before the other functions.
  void resize(int ranks) { peers_.resize(ranks); }

  size_t from(int peer) const { return peers_[peer].count; }
  bool any() const { return total_ > 0; }
  /// Returns the latest deadline of the operations whose handshakes were added, after which waiting is useless.
  int64_t deadline_ns() const { return deadline_ns_; }

  /// Adds `expected` behind the pending handshakes of `peer`, of which there are fewer than kPerPeer.
  void add(int peer, const Signature& expected, int64_t deadline_ns);
  /// Compares the handshakes that have arrived from `peer`; returns true if none is pending any more. Throws Failure
  /// when `peer` called a different operation.
  bool settle(int rank, int peer, Link& link);
  /// Drops the pending handshakes of `peer`, because its link has failed.
  void forget(int peer);

 private:
  struct Peer {
    std::vector<Signature> ring;  // grows on demand
    size_t first = 0;
    size_t count = 0;
  };

  std::vector<Peer> peers_;  // by rank
  size_t total_ = 0;
  int64_t deadline_ns_ = 0;
};

}  // namespace ringwise::coll
