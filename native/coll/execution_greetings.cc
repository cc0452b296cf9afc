// How an operation begins: who is greeted when, what is heard, and which ranks neither wait for it nor are waited for.
#include <algorithm>
#include <cstring>
#include <iterator>

#include "coll/execution.h"
#include "coll/failure.h"

namespace ringwise::coll {

namespace {
// Longer messages than this may not fit what the kernel holds for a rank that has not come yet.
constexpr size_t kAheadBytes = 64 * 1024;
}  // namespace

/// Whether this rank runs ahead, and which ranks it lets speak first.
void Execution::find_role(bool may_run_ahead) {
  const auto& sends = schedule_.sends;
  const auto& steps = schedule_.steps;
  const auto is_little = [&](const auto& message) { return padded_bytes(message.piece) <= kAheadBytes; };
  const auto is_harmless = [](const Step& step) { return step.from < 0 && step.piece.place != Place::Output; };
  runs_ahead_ = may_run_ahead && !sends.empty() && std::all_of(sends.begin(), sends.end(), is_little) &&
                std::all_of(steps.begin(), steps.end(), is_harmless);
  late_.clear();
  if (!may_run_ahead || !sends.empty() || steps.empty() || !std::all_of(steps.begin(), steps.end(), is_little)) return;
  // Where a rank ran ahead in this verb the last time, it most likely does so now. If not, it says so when it is heard.
  const auto answers = [&](int peer) { return ahead_in_[peer] == static_cast<uint8_t>(op_.verb); };
  std::copy_if(schedule_.greets.begin(), schedule_.greets.end(), std::back_inserter(late_), answers);
  std::erase_if(schedule_.greets, answers);
}

Signature Execution::greeting_for(int peer) const {
  Signature greeting = greeting_to(signature_, op_, peer);
  greeting.runs_ahead = runs_ahead_;
  return greeting;
}

bool Execution::greet(Links& links) {
  bool moved = false;
  while (greet_index_ < schedule_.greets.size() && !greets_with_message()) {
    const int peer = schedule_.greets[greet_index_];
    const Signature greeting = greeting_for(peer);
    const auto* bytes = reinterpret_cast<const std::byte*>(&greeting);
    Link& link = *links[peer];
    size_t sent = sizeof(Signature) - greet_offset_;
    try {
      if (!held_.send(peer, link)) break;
      sent = link.send(bytes + greet_offset_, sent);
    } catch (const Failure&) {
      // It is gone, but what it sent before that still counts, and may be all that is needed.
      if (link.peek(sizeof(Signature)).size() < sizeof(Signature)) throw;
      held_.forget(peer);
    }
    if (sent == 0) break;
    moved = true;
    greet_offset_ += sent;
    if (greet_offset_ == sizeof(Signature)) {
      greet_offset_ = 0;
      ++greet_index_;
    }
  }
  return moved;
}

/// The next greeting is the last, and the first message may go with it.
bool Execution::greets_with_message() const {
  if (send_ > 0 || schedule_.sends.empty() || greet_index_ + 1 != schedule_.greets.size()) return false;
  const Send& send = schedule_.sends.front();
  return send.to == schedule_.greets.back() && step_ >= send.after;
}

bool Execution::hear_greetings(Links& links) {
  if (heard_all()) return false;
  bool moved = false;
  for (size_t i = 0; i < schedule_.greeted_by.size(); ++i) {
    if (heard_[i]) continue;
    const int peer = schedule_.greeted_by[i];
    if (!owed_.settle(rank_, peer, *links[peer])) continue;
    const auto bytes = links[peer]->peek(sizeof(Signature));
    if (bytes.size() < sizeof(Signature)) continue;
    Signature theirs;
    std::memcpy(&theirs, bytes.data(), sizeof(Signature));
    const Signature expected = greeting_from(signature_, op_, peer);
    if (!same(theirs, expected)) throw disagreement(rank_, expected, peer, theirs);
    links[peer]->consume(sizeof(Signature));
    heard_[i] = 1;
    ++heard_count_;
    ahead_in_[peer] = theirs.runs_ahead != 0 ? theirs.verb : kVerbCount;
    greet_late(peer, theirs.runs_ahead != 0, *links[peer]);
    moved = true;
  }
  return moved;
}

/// `peer` has been heard: it is greeted now, or later where it does not wait for it.
void Execution::greet_late(int peer, bool is_ahead, Link& link) {
  if (std::erase(late_, peer) == 0) return;
  if (!is_ahead || held_.is_full(peer)) return schedule_.greets.push_back(peer);
  held_.hold(peer, greeting_for(peer));
  if (held_.is_full(peer)) say_held(peer, link);
}

void Execution::speak_up(Links& links) {
  schedule_.greets.insert(schedule_.greets.end(), late_.begin(), late_.end());
  late_.clear();
  for (int peer = 0; held_.any() && peer < size_; ++peer) {
    if (links[peer]) say_held(peer, *links[peer]);
  }
}

/// As far as there is room, and somebody to hear it: that a rank is gone is found out by whoever needs it.
void Execution::say_held(int peer, Link& link) {
  try {
    held_.send(peer, link);
  } catch (const Failure&) {
    held_.forget(peer);
  }
}

/// Once everything has been sent: what has not been heard is owed from now on. True if that ended the operation.
bool Execution::run_ahead(Links& links) {
  if (heard_all() || send_ < schedule_.sends.size() || greet_index_ < schedule_.greets.size() ||
      step_ < schedule_.steps.size())
    return false;
  const auto& peers = schedule_.greeted_by;
  bool has_room = true;
  for (const int peer : peers) {
    // Half of what may be owed is looked for at a time: a call to the kernel brings all that has come.
    if (owed_.from(peer) >= OwedGreetings::kPerPeer / 2) owed_.settle(rank_, peer, *links[peer]);
    has_room &= owed_.from(peer) < OwedGreetings::kPerPeer;
  }
  if (!has_room) return false;
  for (const int peer : peers) owed_.add(peer, greeting_from(signature_, op_, peer), op_.deadline_ns);
  heard_count_ = peers.size();
  return true;
}

}  // namespace ringwise::coll
