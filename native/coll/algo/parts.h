// How a buffer that has one part per rank is cut, and the two phases that work on such parts: to their owners, summed,
// and from their owners to everybody.
#pragma once

#include <vector>

#include "coll/plan/schedule.h"
#include "coll/plan/topology.h"

namespace ringwise::coll {

class Parts {
 public:
  /// One part of `count` elements per rank; or of counts[rank] elements, where `counts` is not null.
  static Parts per_rank(Region region, DType dtype, int size, size_t count, const size_t* counts);
  /// `whole` in parts that begin at multiples of 64 bytes, so that no two ranks write the same cache line; the last
  /// ones may be shorter or empty, and those from `size` on are empty. Where they begin depends on count and dtype
  /// alone.
  static Parts cut(Piece whole, DType dtype, int size);

  Piece of(int rank) const { return range(rank, rank + 1); }
  /// The parts of the ranks from `begin` on and before `end`, which lie side by side.
  Piece range(int begin, int end) const;

  /// The same parts in another piece, which begins with part `first`.
  Parts moved(Piece to, int first = 0) const;

 private:
  size_t begin_of(int rank) const;

  Piece base_;          // where part 0 begins; its count is not used
  size_t element_ = 1;  // bytes
  size_t total_ = 0;
  size_t part_ = 0;             // elements, where parts are even
  std::vector<size_t> begins_;  // by rank, and the end; empty where parts are even
};

/// Direct exchange: every part has one owner, who gets the other ranks' contributions straight from them: the sum
/// begins with its own, then those of r−1, r−2, … follow. So a result has one author and one order, whatever arrives
/// when. The sums of this rank's part go to `target`, which nothing is written to before they are complete if it is the
/// output. Latency of one message; n−1 messages, S·(n−1)/n bytes.
void reduce_to_owners(const Op& op, const Parts& inputs, Piece target, const Team& team, Schedule& schedule);

/// Every owner sends its part to all others. Latency of one message; n−1 messages, S·(n−1)/n bytes.
void spread_from_owners(const Parts& outputs, const Team& team, Schedule& schedule);

}  // namespace ringwise::coll
