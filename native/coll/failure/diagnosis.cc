#include "coll/failure/diagnosis.h"

#include <algorithm>
#include <cstdio>

#include "base/time/clock.h"

namespace ringwise::coll {

namespace {

constexpr size_t kHistory = 1024;  // more than a rank runs ahead of another one
constexpr size_t kMaxNamed = 8;

// A rank whose last answer is at most this old is not asked again.
constexpr int64_t kFreshNs = 50 * kMillisecond;

// When a rank ends, its connections end within moments of each other. If one has ended and the other neither ends nor
// brings data for this long, the network has cut the connection, and the rank counts as unreachable.
constexpr int64_t kCutNs = 500 * kMillisecond;

std::string rank_list(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < std::min(ranks.size(), kMaxNamed); ++i)
    text += (i == 0 ? "" : ", ") + std::to_string(ranks[i]);
  return ranks.size() <= kMaxNamed ? text : text + " and " + std::to_string(ranks.size() - kMaxNamed) + " more";
}

std::string seconds(int64_t ns) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f s", static_cast<double>(std::max<int64_t>(ns, 0)) / 1e9);
  return text;
}

std::string in_brackets(const std::string& details) { return details.empty() ? "" : " (" + details + ")"; }

bool contains(const std::vector<int>& ranks, int rank) {
  return std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
}

/// Returns the flight record entry of an operation for which the recorder had no slot.
FlightEntry entry_of(const Op& op) {
  FlightEntry entry;
  entry.verb = op.verb;
  entry.dtype = op.dtype;
  entry.reduce = op.reduce;
  entry.root = op.root;
  entry.tag = op.tag;
  entry.seq = op.seq;
  entry.count = op.count;
  entry.label = op.label;
  return entry;
}

}  // namespace

Diagnosis::Diagnosis(int rank, int size, const FlightRecorder& flight)
    : rank_(rank), flight_(flight), peers_(size), history_(kHistory) {}

bool Diagnosis::died(int peer, const char* reason) {
  if (!is_here(peer)) return false;
  peers_[peer].liveness = Liveness::Dead;
  is_complete_ = false;
  peers_[peer].reason = reason;
  return true;
}

bool Diagnosis::distrusted(int peer, const char* reason) {
  peers_[peer].is_trusted = false;
  return died(peer, reason);
}

bool Diagnosis::is_lost(int peer, bool has_link_ended, int64_t idle_since_ns, int64_t now, int64_t& look_again_ns) {
  Peer& state = peers_[peer];
  const bool is_gone = !is_here(peer);
  if (is_gone && !state.is_trusted) return true;
  if (is_gone == has_link_ended) return is_gone;
  // it closed the group properly, so the rest of its data will arrive
  if (state.liveness == Liveness::Left) return false;
  if (state.parted_ns == 0) state.parted_ns = now;
  const int64_t cut_ns = std::max(state.parted_ns, idle_since_ns) + kCutNs;
  if (now >= cut_ns) return true;
  look_again_ns = std::min(look_again_ns, cut_ns);
  return false;
}

void Diagnosis::answered(int peer, const Activity& activity, int64_t now) {
  peers_[peer].activity = activity;
  peers_[peer].answered_ns = now;
  peers_[peer].asked_ns = 0;
}

int Diagnosis::lowest_here() const {
  int rank = 0;
  while (rank < rank_ && !is_here(rank)) ++rank;
  return rank;
}

std::optional<Failure> Diagnosis::conflict(int peer, const Signature& signature) const {
  const Signature& mine = history_[signature.seq % kHistory];
  const bool collective = signature.verb != static_cast<uint8_t>(Verb::Send);
  if (!collective || mine.magic != signature.magic || mine.seq != signature.seq || same(mine, signature))
    return std::nullopt;
  return disagreement(rank_, mine, peer, signature);
}

Activity Diagnosis::activity(uint32_t record, uint64_t begun, int64_t now) const {
  Activity activity;
  activity.begun = begun;
  FlightEntry entry;
  if (flight_.read(record, entry)) {
    activity.kind = Activity::Kind::Running;
    activity.for_ns = now - entry.queued_ns;
  } else if (flight_.read(flight_.last_ended(), entry) && entry.ended_ns != 0) {
    activity.kind = Activity::Kind::Idle;
    activity.for_ns = now - entry.ended_ns;
  } else {
    return activity;
  }
  activity.name = name_of(entry);
  activity.details = details_of(entry);
  return activity;
}

void Diagnosis::ask(Control& control, int peer, const Signature& signature, int64_t now) {
  Peer& state = peers_[peer];
  if (peer == rank_ || state.asked_ns != 0 || now - state.answered_ns < kFreshNs) return;
  state.asked_ns = now;
  control.ask(peer, signature);
}

void Diagnosis::ask(Control& control, const std::vector<int>& ranks, const Signature& signature, int64_t now) {
  for (const int rank : ranks) ask(control, rank, signature, now);
}

void Diagnosis::ask_all(Control& control, const Signature& signature, int64_t now) {
  for (size_t rank = 0; rank < peers_.size(); ++rank) ask(control, static_cast<int>(rank), signature, now);
}

Failure Diagnosis::gone(int peer, const Signature& signature) const {
  const Peer& state = peers_[peer];
  const std::string name = "rank " + std::to_string(peer);
  return {FailureCode::PeerLost,
          rank_,
          {peer},
          state.liveness != Liveness::Left
              ? "lost " + name + " (" + (state.reason.empty() ? "its connection closed" : state.reason) + ")"
              : name + " has closed the group, but rank " + std::to_string(rank_) + " still needs it for " +
                    describe(signature, rank_)};
}

/// Builds text such as "rank 3 never entered allReduce #4821 (128 × float32, train.ts:57) within 2000 ms; it has been
/// in barrier #4820 for 12.3 s (eval.ts:9)".
Failure Diagnosis::late(const Op& op, const std::vector<int>& waiting, int64_t now) const {
  FlightEntry mine;
  if (!flight_.read(op.record, mine)) mine = entry_of(op);
  const int64_t waited = std::min(now - op.deadline_ns, int64_t{0}) + op.timeout_ns;  // at most the timeout
  const auto is_fresh = [&](const Peer& peer) {
    return peer.activity && peer.asked_ns == 0 && peer.answered_ns >= mine.queued_ns;
  };
  std::vector<int> absent, others;
  for (int rank = 0; rank < static_cast<int>(peers_.size()); ++rank) {
    const bool never_came = !op.is_point_to_point() && is_fresh(peers_[rank]) && peers_[rank].activity->begun <= op.seq;
    if (never_came)
      absent.push_back(rank);
    else if (contains(waiting, rank) && (op.is_point_to_point() || !is_fresh(peers_[rank])))
      others.push_back(rank);
  }
  // Name the ranks that have not entered the operation first: the others wait for them.
  std::vector<int> named = absent;
  named.insert(named.end(), others.begin(), others.end());
  for (int rank = 0; named.empty() && rank < static_cast<int>(peers_.size()); ++rank) {
    if (peers_[rank].asked_ns != 0) named.push_back(rank);
  }
  if (named.empty()) named = waiting;
  const std::string what = name_of(mine) + in_brackets(details_of(mine)),
                    within = " within " + std::to_string(waited / kMillisecond) + " ms";
  std::string text = absent.empty() ? "no answer from " + rank_list(named) + within + " in " + what
                                    : rank_list(absent) + " never entered " + what + within;
  for (size_t i = 0; i < std::min(named.size(), kMaxNamed); ++i) {
    text += (named.size() == 1 ? "; it" : "; rank " + std::to_string(named[i])) + doing(named[i], mine.queued_ns, now);
  }
  std::ranges::sort(named);
  return {FailureCode::Timeout, rank_, named, text};
}

/// Returns the words that follow "rank 3" in the error text. Ignores answers from before `since_ns`.
std::string Diagnosis::doing(int peer, int64_t since_ns, int64_t now) const {
  const Peer& state = peers_[peer];
  const bool is_old = !state.activity || state.answered_ns < since_ns;
  std::string text;
  if (state.asked_ns != 0 || is_old) {
    text = " does not react at all (stopped, or its host is out of reach)";
    if (is_old) return text;
    text += "; " + seconds(now - state.answered_ns) + " ago it had been";
    now = state.answered_ns;
  }
  const Activity& activity = *state.activity;
  const std::string duration = " for " + seconds(activity.for_ns + now - state.answered_ns);
  const std::string has_been = text.empty() ? " has been" : "";
  switch (activity.kind) {
    case Activity::Kind::Nothing:
      return text + (text.empty() ? " has not started any operation" : " in no operation yet");
    case Activity::Kind::Running:
      return text + has_been + " in " + activity.name + duration + in_brackets(activity.details);
    case Activity::Kind::Idle: break;
  }
  return text + has_been + " idle" + duration + ", after " + activity.name + in_brackets(activity.details);
}

}  // namespace ringwise::coll
