#include "coll/held_greetings.h"

namespace ringwise::coll {

void HeldGreetings::hold(int peer, const Signature& greeting) {
  Peer& state = peers_[peer];
  if (state.greetings.empty()) state.greetings.resize(kPerPeer);
  if (state.count == 0) ++holding_;
  state.greetings[state.count++] = greeting;
}

bool HeldGreetings::send(int peer, Link& link) {
  Peer& state = peers_[peer];
  while (state.count > 0) {
    const size_t bytes = state.count * sizeof(Signature);
    const size_t moved =
        link.send(reinterpret_cast<const std::byte*>(state.greetings.data()) + state.sent, bytes - state.sent);
    if (moved == 0) return false;
    state.sent += moved;
    if (state.sent == bytes) forget(peer);
  }
  return true;
}

void HeldGreetings::forget(int peer) {
  Peer& state = peers_[peer];
  if (state.count > 0) --holding_;
  state.count = state.sent = 0;
}

}  // namespace ringwise::coll
