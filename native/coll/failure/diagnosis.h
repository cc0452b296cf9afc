// What a rank knows about the others when it waits too long, and the sentences that follow from it. Ranks that are
// waited for are asked what they do; their lanes answer, also while their programs compute or hang.
//
// Used by whoever owns the engine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "coll/failure/control.h"
#include "coll/failure/failure.h"
#include "coll/flight/flight_recorder.h"
#include "coll/handshake/signature.h"
#include "coll/op.h"

namespace ringwise::coll {

class Diagnosis {
 public:
  /// `flight` is this rank's, and outlives this object.
  Diagnosis(int rank, int size, const FlightRecorder& flight);

  // What is heard of the others.
  void left(int peer) {
    peers_[peer].liveness = Liveness::Left;
    is_complete_ = false;
  }
  /// False if it was known to be gone.
  bool died(int peer, const char* reason);
  /// Its connection is fine, but it cannot be understood: also what it has sent before does not count. False as above.
  bool distrusted(int peer, const char* reason);
  void answered(int peer, const Activity& activity, int64_t now);
  bool is_here(int peer) const { return peers_[peer].liveness == Liveness::Alive; }
  bool is_everyone_here() const { return is_complete_; }
  /// Whether nothing more will come from a rank that this one has waited for since `idle_since_ns`. `has_link_ended`: its
  /// link has no more to give. `look_again_ns` becomes earlier where the answer may change by itself.
  bool is_lost(int peer, bool has_link_ended, int64_t idle_since_ns, int64_t now, int64_t& look_again_ns);
  /// The lowest rank that is here, this one included.
  int lowest_here() const;

  /// Remembers the signature of a collective, for questions that come later.
  void remember(const Signature& signature) { history_[signature.seq % history_.size()] = signature; }
  /// Another rank waits in `signature`: the disagreement, if this rank ran another collective at that place.
  std::optional<Failure> conflict(int peer, const Signature& signature) const;
  /// What this rank is in, an operation at `record` of the flight recorder, or 0; and the collectives it has begun.
  Activity activity(uint32_t record, uint64_t begun, int64_t now) const;

  /// Asks those that have not been asked for a while.
  void ask(Control& control, const std::vector<int>& ranks, const Signature& signature, int64_t now);
  void ask_all(Control& control, const Signature& signature, int64_t now);

  /// `peer` is no longer here, but `signature` needs it.
  Failure gone(int peer, const Signature& signature) const;
  /// The deadline of `op` is over, and it waits for these ranks.
  Failure late(const Op& op, const std::vector<int>& waiting, int64_t now) const;

 private:
  enum class Liveness : uint8_t { Alive, Left, Dead };
  struct Peer {
    Liveness liveness = Liveness::Alive;
    std::string reason;
    bool is_trusted = true;
    int64_t parted_ns = 0;  // when one of its connections was first seen to have ended without the other; 0: never
    std::optional<Activity> activity;  // its last answer
    int64_t answered_ns = 0;
    int64_t asked_ns = 0;  // 0: no question is unanswered
  };

  void ask(Control& control, int peer, const Signature& signature, int64_t now);
  std::string doing(int peer, int64_t since_ns, int64_t now) const;

  const int rank_;
  const FlightRecorder& flight_;
  std::vector<Peer> peers_;         // by rank
  bool is_complete_ = true;         // all of them are here
  std::vector<Signature> history_;  // the last collectives over links, by seq modulo its size
};

}  // namespace ringwise::coll
