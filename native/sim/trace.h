// What a plan means to a network: who sends how much to whom, and what waits for what. Made from the plan that the
// ranks of a real group carry out. Entries that follow a pattern (the next rank, the same length) are stored as one
// run, so that the plans of thousands of ranks with thousands of messages each fit into memory.
#pragma once

#include <cstdint>
#include <vector>

#include "coll/plan/choose.h"
#include "coll/plan/schedule.h"

namespace ringwise::sim {

/// A message out, or a step: a message in, or local work.
struct Entry {
  int peer = -1;  // -1: local work
  size_t bytes = 0;
  size_t needs = 0;  // entries of the other list that must be done before it begins
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
  /// The least of what entries from the front on need, 0 aside; 0 if none needs anything. Needs only grow, 0 aside.
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

  // What the front takes lies here, so that runs are touched when one begins only.
  Entry front_;
  uint32_t left_ = 0;  // of the front's run, with the front
  int peer_step_ = 0;  // of the front's run
  size_t needs_step_ = 0;
  int ranks_;
  uint32_t run_ = 0;  // of the front
  std::vector<Run> runs_;
};

struct Trace {
  explicit Trace(int ranks) : sends(ranks), steps(ranks) {}
  Entries sends;
  Entries steps;
};

/// The trace of `schedule`, a rank's plan for `op`. `handshakes`: with the signatures that ranks exchange first.
Trace trace_of(const coll::Op& op, const coll::Schedule& schedule, int ranks, bool handshakes);

}  // namespace ringwise::sim
