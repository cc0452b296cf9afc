// Deferred handshakes: those that this rank sends later, because the peer does not wait for them. The peer has sent its
// own handshake, which agrees and says that the peer runs ahead. Deferred handshakes go together, or with the next data
// for that peer, so that each one does not cost a packet.
//
// Used only by the thread that owns the engine.
#pragma once

#include <cstddef>
#include <vector>

#include "coll/handshake/pending_handshakes.h"
#include "coll/handshake/signature.h"
#include "coll/transport/link.h"

namespace ringwise::coll {

class DeferredHandshakes {
 public:
  /// Most deferred handshakes per peer. It is below PendingHandshakes::kPerPeer, so that they reach the peer before the
  /// peer has to wait for them.
  static constexpr size_t kPerPeer = PendingHandshakes::kPerPeer / 4;

  /// Sets the number of ranks and keeps the deferred handshakes. Call it before the other functions.
  void resize(int ranks) { peers_.resize(ranks); }

  bool any() const { return holding_ > 0; }
  bool is_full(int peer) const { return peers_[peer].count == kPerPeer; }
  /// Defers a handshake to `peer`. The peer's list must not be full.
  void defer(int peer, const Signature& handshake);
  /// Sends the deferred handshakes to `peer`; returns true if none is left. Throws Failure when the link fails.
  bool send(int peer, Link& link);
  /// Drops the deferred handshakes to `peer`.
  void forget(int peer);

 private:
  struct Peer {
    std::vector<Signature> handshakes;  // empty, or kPerPeer entries after the first defer()
    size_t count = 0;
    size_t sent = 0;  // bytes of them that the link has taken
  };

  std::vector<Peer> peers_;  // by rank
  size_t holding_ = 0;       // number of peers with deferred handshakes
};

}  // namespace ringwise::coll
