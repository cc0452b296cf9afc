// Handshakes that a rank keeps back because nobody waits for them: those to a rank whose handshake has come, runs ahead, and
// agrees. Several go at once, or with the next thing that this rank has to say, and no packet is spent on each.
//
// Used by whoever owns the engine.
#pragma once

#include <cstddef>
#include <vector>

#include "coll/handshake/pending_handshakes.h"
#include "coll/handshake/signature.h"
#include "coll/transport/link.h"

namespace ringwise::coll {

class DeferredHandshakes {
 public:
  /// So many to one rank are kept back at most: it must hear of them before it has to wait.
  static constexpr size_t kPerPeer = PendingHandshakes::kPerPeer / 4;

  /// Before anything else; keeps what is held.
  void resize(int ranks) { peers_.resize(ranks); }

  bool any() const { return holding_ > 0; }
  bool is_full(int peer) const { return peers_[peer].count == kPerPeer; }
  /// Unless it is full.
  void hold(int peer, const Signature& handshake);
  /// Sends what is held for `peer`; true if nothing is left of it. Throws Failure where the link does.
  bool send(int peer, Link& link);
  /// Nobody is there to hear it.
  void forget(int peer);

 private:
  struct Peer {
    std::vector<Signature> handshakes;  // kPerPeer, once anything has been held
    size_t count = 0;
    size_t sent = 0;  // bytes of them
  };

  std::vector<Peer> peers_;  // by rank
  size_t holding_ = 0;       // for how many of them there is something
};

}  // namespace ringwise::coll
