#include "coll/handshake/deferred_handshakes.h"

namespace ringwise::coll {

void DeferredHandshakes::defer(int peer, const Signature& handshake) {
  Peer& state = peers_[peer];
  if (state.handshakes.empty()) state.handshakes.resize(kPerPeer);
  if (state.count == 0) ++holding_;
  state.handshakes[state.count++] = handshake;
}

bool DeferredHandshakes::send(int peer, Link& link) {
  Peer& state = peers_[peer];
  while (state.count > 0) {
    const size_t bytes = state.count * sizeof(Signature);
    const size_t moved =
        link.send(reinterpret_cast<const std::byte*>(state.handshakes.data()) + state.sent, bytes - state.sent);
    if (moved == 0) return false;
    state.sent += moved;
    if (state.sent == bytes) forget(peer);
  }
  return true;
}

void DeferredHandshakes::forget(int peer) {
  Peer& state = peers_[peer];
  if (state.count > 0) --holding_;
  state.count = state.sent = 0;
}

}  // namespace ringwise::coll
