#include "coll/handshake/pending_handshakes.h"

#include <algorithm>
#include <cstring>

namespace ringwise::coll {

void PendingHandshakes::add(int peer, const Signature& expected, int64_t deadline_ns) {
  Peer& state = peers_[peer];
  auto& ring = state.ring;
  if (state.count == ring.size()) {
    std::rotate(ring.begin(), ring.begin() + static_cast<std::ptrdiff_t>(state.first), ring.end());
    state.first = 0;
    ring.resize(std::max<size_t>(16, 2 * ring.size()));
  }
  ring[(state.first + state.count) % ring.size()] = expected;
  ++state.count;
  ++total_;
  deadline_ns_ = std::max(deadline_ns_, deadline_ns);
}

bool PendingHandshakes::settle(int rank, int peer, Link& link) {
  Peer& state = peers_[peer];
  while (state.count > 0) {
    const auto bytes = link.peek(sizeof(Signature));
    if (bytes.size() < sizeof(Signature)) return false;
    Signature theirs;
    std::memcpy(&theirs, bytes.data(), sizeof theirs);
    const Signature& expected = state.ring[state.first];
    if (!same(theirs, expected)) throw disagreement(rank, expected, peer, theirs);
    link.consume(sizeof theirs);
    state.first = (state.first + 1) % state.ring.size();
    --state.count;
    --total_;
  }
  return true;
}

void PendingHandshakes::forget(int peer) {
  total_ -= peers_[peer].count;
  peers_[peer].count = 0;
}

}  // namespace ringwise::coll
