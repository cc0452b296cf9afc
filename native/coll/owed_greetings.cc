#include "coll/owed_greetings.h"

#include <algorithm>
#include <cstring>

namespace ringwise::coll {

void OwedGreetings::add(int peer, const Signature& expected, int64_t deadline_ns) {
  Peer& state = peers_[peer];
  if (state.ring.empty()) state.ring.resize(kPerPeer);
  state.ring[(state.first + state.count) % kPerPeer] = expected;
  ++state.count;
  ++total_;
  deadline_ns_ = std::max(deadline_ns_, deadline_ns);
}

bool OwedGreetings::settle(int rank, int peer, Link& link) {
  Peer& state = peers_[peer];
  while (state.count > 0) {
    const auto bytes = link.peek(sizeof(Signature));
    if (bytes.size() < sizeof(Signature)) return false;
    Signature theirs;
    std::memcpy(&theirs, bytes.data(), sizeof theirs);
    const Signature& expected = state.ring[state.first];
    if (!same(theirs, expected)) throw disagreement(rank, expected, peer, theirs);
    link.consume(sizeof theirs);
    state.first = (state.first + 1) % kPerPeer;
    --state.count;
    --total_;
  }
  return true;
}

void OwedGreetings::forget(int peer) {
  total_ -= peers_[peer].count;
  peers_[peer].count = 0;
}

}  // namespace ringwise::coll
