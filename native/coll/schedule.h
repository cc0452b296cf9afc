// What one rank does for one operation: a list of steps over named pieces of memory. Planning is pure (a function
// of rank, size, root and count); carrying it out is Execution's job. So the same plans can run over shared
// memory, sockets, or a simulated network.
//
// A step moves at most one message out and one message in, at the same time, then does its local work. Steps run
// strictly in order. Both ends of a message plan it with the same number of bytes; empty messages are not sent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "coll/op.h"

namespace ringwise::coll {

enum class Place : uint8_t { Input, Output, Scratch };

/// `count` elements at `offset` (in bytes) of a place. Elements are of the operation's dtype, except where a step
/// says that a piece of scratch holds accumulators.
struct Piece {
  Place place = Place::Input;
  size_t offset = 0;
  size_t count = 0;
};

/// What happens with arriving elements: stored as they are, or folded into accumulators.
enum class Take : uint8_t { Store, Accumulate };

/// Work without communication. Accumulators are the left operand or the source where the name says so.
enum class Local : uint8_t { None, Copy, Scale, Widen, Accumulate, Narrow };

struct Step {
  int to = -1;
  Piece outgoing;
  int from = -1;
  Piece incoming;
  Take take = Take::Store;
  Local local = Local::None;
  Piece target;  // of the local work
  Piece source;
};

struct Schedule {
  std::vector<int> greets;     // ranks that get this rank's signature before anything else
  std::vector<int> greeted_by; // ranks whose signature must have come, and agree, before any buffer is touched
  std::vector<Step> steps;
  size_t scratch_bytes = 0;

  /// Empties the schedule and keeps its memory, so that a steady loop allocates nothing.
  void clear();
  void exchange(int to, Piece outgoing, int from, Piece incoming, Take take);
  void work(Local local, Piece target, Piece source);
  /// Reserves aligned scratch; returns its offset.
  size_t scratch(size_t bytes);
};

/// Plans `op` for `rank` of `size`, choosing the algorithm.
void plan(const Op& op, int rank, int size, Schedule& schedule);

}  // namespace ringwise::coll
