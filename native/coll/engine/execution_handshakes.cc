// The beginning of an operation: when handshakes are sent, how they are compared, and which ranks run ahead without
// waiting.
#include <algorithm>
#include <cstring>
#include <iterator>

#include "coll/engine/execution.h"
#include "coll/failure/failure.h"

namespace ringwise::coll {

namespace {
// Longer messages may not fit the kernel's buffers while the receiver has not begun the operation.
constexpr size_t kAheadBytes = 64 * 1024;
}  // namespace

/// Decides whether this rank runs ahead, and to which ranks it sends its handshake only after theirs has arrived.
void Execution::find_role(bool may_run_ahead) {
  const auto& sends = schedule_.sends;
  const auto& steps = schedule_.steps;
  const auto is_little = [&](const auto& message) { return padded_bytes(message.piece) <= kAheadBytes; };
  const auto is_harmless = [](const Step& step) { return step.from < 0 && step.piece.region != Region::Output; };
  runs_ahead_ = may_run_ahead && !sends.empty() && std::all_of(sends.begin(), sends.end(), is_little) &&
                std::all_of(steps.begin(), steps.end(), is_harmless);
  late_.clear();
  if (!may_run_ahead || !sends.empty() || steps.empty() || !std::all_of(steps.begin(), steps.end(), is_little)) return;
  // A rank that ran ahead in this verb the last time most likely does so again. Its handshake tells if it does not.
  const auto answers = [&](int peer) { return ahead_in_[peer] == static_cast<uint8_t>(op_.verb); };
  std::copy_if(schedule_.handshake_targets.begin(), schedule_.handshake_targets.end(), std::back_inserter(late_),
               answers);
  std::erase_if(schedule_.handshake_targets, answers);
}

Signature Execution::handshake_for(int peer) const {
  Signature handshake = handshake_to(signature_, op_, peer);
  handshake.runs_ahead = runs_ahead_;
  return handshake;
}

bool Execution::send_handshakes(Links& links) {
  bool moved = false;
  while (handshake_index_ < schedule_.handshake_targets.size() && !handshake_goes_with_message()) {
    const int peer = schedule_.handshake_targets[handshake_index_];
    const Signature handshake = handshake_for(peer);
    const auto* bytes = reinterpret_cast<const std::byte*>(&handshake);
    Link& link = *links[peer];
    size_t sent = sizeof(Signature) - handshake_offset_;
    try {
      if (!deferred_.send(peer, link)) break;
      sent = link.send(bytes + handshake_offset_, sent);
    } catch (const Failure&) {
      // The peer is gone, but data that it sent before still counts and may be all that this operation needs.
      if (link.peek(sizeof(Signature)).size() < sizeof(Signature)) throw;
      deferred_.forget(peer);
    }
    if (sent == 0) break;
    moved = true;
    handshake_offset_ += sent;
    if (handshake_offset_ == sizeof(Signature)) {
      handshake_offset_ = 0;
      ++handshake_index_;
    }
  }
  return moved;
}

/// Returns true if the next handshake is the last one and goes to the receiver of the first message, so that both can
/// be sent together.
bool Execution::handshake_goes_with_message() const {
  if (send_ > 0 || schedule_.sends.empty() || handshake_index_ + 1 != schedule_.handshake_targets.size()) return false;
  const Send& send = schedule_.sends.front();
  return send.to == schedule_.handshake_targets.back() && step_ >= send.after;
}

bool Execution::receive_handshakes(Links& links) {
  if (heard_all()) return false;
  bool moved = false;
  for (size_t i = 0; i < schedule_.handshake_sources.size(); ++i) {
    if (heard_[i]) continue;
    const int peer = schedule_.handshake_sources[i];
    if (!pending_.settle(rank_, peer, *links[peer])) continue;
    const auto bytes = links[peer]->peek(sizeof(Signature));
    if (bytes.size() < sizeof(Signature)) continue;
    Signature theirs;
    std::memcpy(&theirs, bytes.data(), sizeof(Signature));
    const Signature expected = handshake_from(signature_, op_, peer);
    if (!same(theirs, expected)) throw disagreement(rank_, expected, peer, theirs);
    links[peer]->consume(sizeof(Signature));
    heard_[i] = 1;
    ++heard_count_;
    ahead_in_[peer] = theirs.runs_ahead != 0 ? theirs.verb : kVerbCount;
    answer_handshake(peer, theirs.runs_ahead != 0, *links[peer]);
    moved = true;
  }
  return moved;
}

/// Answers the handshake of `peer`: now, or later if `peer` does not wait for the answer.
void Execution::answer_handshake(int peer, bool is_ahead, Link& link) {
  if (std::erase(late_, peer) == 0) return;
  if (!is_ahead || deferred_.is_full(peer)) return schedule_.handshake_targets.push_back(peer);
  deferred_.defer(peer, handshake_for(peer));
  if (deferred_.is_full(peer)) send_deferred_to(peer, link);
}

void Execution::send_deferred(Links& links) {
  schedule_.handshake_targets.insert(schedule_.handshake_targets.end(), late_.begin(), late_.end());
  late_.clear();
  for (int peer = 0; deferred_.any() && peer < size_; ++peer) {
    if (links[peer]) send_deferred_to(peer, *links[peer]);
  }
}

/// Sends the deferred handshakes for `peer` that the link has room for. Drops them when the link fails: the next
/// operation that needs the peer reports its loss.
void Execution::send_deferred_to(int peer, Link& link) {
  try {
    deferred_.send(peer, link);
  } catch (const Failure&) {
    deferred_.forget(peer);
  }
}

/// Ends the operation once everything has been sent, and leaves the handshakes that have not arrived pending. Returns
/// true if the operation ended; it cannot while a peer has PendingHandshakes::kPerPeer handshakes pending.
bool Execution::run_ahead(Links& links) {
  if (heard_all() || send_ < schedule_.sends.size() || handshake_index_ < schedule_.handshake_targets.size() ||
      step_ < schedule_.steps.size())
    return false;
  const auto& peers = schedule_.handshake_sources;
  bool has_room = true;
  for (const int peer : peers) {
    // Reads only when half of the limit is pending, so that one system call fetches many handshakes.
    if (pending_.from(peer) >= PendingHandshakes::kPerPeer / 2) pending_.settle(rank_, peer, *links[peer]);
    has_room &= pending_.from(peer) < PendingHandshakes::kPerPeer;
  }
  if (!has_room) return false;
  for (const int peer : peers) pending_.add(peer, handshake_from(signature_, op_, peer), op_.deadline_ns);
  heard_count_ = peers.size();
  return true;
}

}  // namespace ringwise::coll
