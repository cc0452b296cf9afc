// Collects a waiting rank's knowledge about the other ranks, and builds error messages from it. The rank asks the ranks
// that it waits for what they are doing; their lanes answer, even while their programs compute or hang.
//
// Used only by the thread that owns the engine.
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

  // Events from other ranks.
  void left(int peer) {
    peers_[peer].liveness = Liveness::Left;
    is_complete_ = false;
  }
  /// Notes that `peer` has died; returns false if it was known to be gone.
  bool died(int peer, const char* reason);
  /// Notes that `peer` sent invalid bytes, so that its earlier data does not count either. Returns false as above.
  bool distrusted(int peer, const char* reason);
  void answered(int peer, const Activity& activity, int64_t now);
  bool is_here(int peer) const { return peers_[peer].liveness == Liveness::Alive; }
  bool is_everyone_here() const { return is_complete_; }
  /// Returns whether no more data will arrive from a rank for which this one has waited since `idle_since_ns`.
  /// `has_link_ended` tells that its link has no more data. Makes `look_again_ns` earlier if the answer may change by
  /// then.
  bool is_lost(int peer, bool has_link_ended, int64_t idle_since_ns, int64_t now, int64_t& look_again_ns);
  /// Returns the lowest live rank, this one included.
  int lowest_here() const;

  /// Remembers the signature of a collective, for questions that come later.
  void remember(const Signature& signature) { history_[signature.seq % history_.size()] = signature; }
  /// Returns the disagreement with `peer`, which waits in `signature`, if this rank ran another collective with the
  /// same sequence number.
  std::optional<Failure> conflict(int peer, const Signature& signature) const;
  /// Returns what this rank is doing: the operation at `record` of the flight recorder (0: none), and the number of
  /// collectives that it has begun.
  Activity activity(uint32_t record, uint64_t begun, int64_t now) const;

  /// Asks those of `ranks` that have no unanswered question and no fresh answer.
  void ask(Control& control, const std::vector<int>& ranks, const Signature& signature, int64_t now);
  void ask_all(Control& control, const Signature& signature, int64_t now);

  /// Returns the failure of the operation `signature`, which needs the lost rank `peer`.
  Failure gone(int peer, const Signature& signature) const;
  /// Returns the timeout of `op`, which waits for these ranks.
  Failure late(const Op& op, const std::vector<int>& waiting, int64_t now) const;

 private:
  enum class Liveness : uint8_t { Alive, Left, Dead };
  struct Peer {
    Liveness liveness = Liveness::Alive;
    std::string reason;
    bool is_trusted = true;
    int64_t parted_ns = 0;             // when only one of its connections was first seen to have ended; 0 if never
    std::optional<Activity> activity;  // its last answer
    int64_t answered_ns = 0;
    int64_t asked_ns = 0;  // 0: no question is unanswered
  };

  void ask(Control& control, int peer, const Signature& signature, int64_t now);
  std::string doing(int peer, int64_t since_ns, int64_t now) const;

  const int rank_;
  const FlightRecorder& flight_;
  std::vector<Peer> peers_;         // by rank
  bool is_complete_ = true;         // all peers are alive
  std::vector<Signature> history_;  // the last collectives over links, by seq modulo its size
};

}  // namespace ringwise::coll
