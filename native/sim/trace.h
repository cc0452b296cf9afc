// The messages of a rank's schedule and their dependencies, for the simulated network. The schedule is the one that a
// real group would run. Entries that follow a pattern (the next rank, the same length) are stored as one run, so that
// the schedules of thousands of ranks with thousands of messages each fit into memory.
#pragma once

#include <cstdint>
#include <vector>

#include "coll/plan/choose.h"
#include "coll/plan/schedule.h"

namespace ringwise::sim {

/// An outgoing message or a step, which is an incoming message or local work.
struct Entry {
  int peer = -1;  // -1: local work
  size_t bytes = 0;
  size_t needs = 0;  // number of entries of the other list that must have ended before it begins
};

/// A list of entries, read from the front.
class Entries {
 public:
  explicit Entries(int ranks) : ranks_(ranks) {}

  void add(const Entry& entry);
  bool done() const { return left_ == 0; }
  const Entry& front() const { return front_; }
  void pop() {
    if (--left_ > 0)
      advance(front_, peer_step_, needs_step_);
    else if (++run_ < runs_.size())
      begin_run();
  }
  /// Returns the lowest nonzero `needs` of the remaining entries; 0 if all are 0. Apart from zeros, `needs` never
  /// decreases along the list.
  size_t lowest_need() const { return done() || front_.needs > 0 ? front_.needs : later_need(); }

 private:
  struct Run {
    Entry first;
    Entry last;
    uint32_t count = 1;
    int peer_step = 0;  // modulo the number of ranks
    size_t needs_step = 0;
  };

  void advance(Entry& entry, int peer_step, size_t needs_step) const {
    entry.peer += peer_step;
    if (entry.peer >= ranks_) entry.peer -= ranks_;
    entry.needs += needs_step;
  }
  void begin_run();
  size_t later_need() const;

  // A copy of the front's values, so that runs_ is accessed only when a run begins.
  Entry front_;
  uint32_t left_ = 0;  // remaining entries of the front's run, the front included
  int peer_step_ = 0;  // as in the front's run
  size_t needs_step_ = 0;
  int ranks_;
  uint32_t run_ = 0;  // index of the front's run
  std::vector<Run> runs_;
};

struct Trace {
  explicit Trace(int ranks) : sends(ranks), steps(ranks) {}
  Entries sends;
  Entries steps;
};

/// Returns the trace of `schedule`, a rank's plan for `op`. With `handshakes`, includes the signatures that ranks
/// exchange first.
Trace trace_of(const coll::Op& op, const coll::Schedule& schedule, int ranks, bool handshakes);

}  // namespace ringwise::sim
