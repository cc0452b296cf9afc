// Cuts a buffer into one part per rank, and plans the two phases of many algorithms: reducing each part at its owner,
// and sending each part from its owner to all.
#pragma once

#include <vector>

#include "coll/plan/schedule.h"
#include "coll/plan/topology.h"

namespace ringwise::coll {

class Parts {
 public:
  /// Returns parts of `count` elements per rank, or of counts[rank] elements if `counts` is not null.
  static Parts per_rank(Region region, DType dtype, int size, size_t count, const size_t* counts);
  /// Cuts `whole` into parts that begin at multiples of 64 bytes, counted from its beginning, so that no two ranks
  /// write the same cache line of an aligned buffer. The last parts may be shorter or empty, and parts from index
  /// `size` on are empty. The cuts depend only on size, count and dtype.
  static Parts cut(Piece whole, DType dtype, int size);

  Piece of(int rank) const { return range(rank, rank + 1); }
  /// Returns the parts of ranks [begin, end), which are contiguous, as one piece.
  Piece range(int begin, int end) const;

  /// Returns the same parts at another place: `to` begins with part `first`.
  Parts moved(Piece to, int first = 0) const;

 private:
  size_t begin_of(int rank) const;

  Piece base_;          // begins with part 0; its count is not used
  size_t element_ = 1;  // bytes
  size_t total_ = 0;
  size_t part_ = 0;             // elements of a part, if parts are even
  std::vector<size_t> begins_;  // first element by rank, and the end; empty if parts are even
};

/// Plans a reduction by direct exchange: every part has one owner, rank r, which receives the contributions of the
/// other ranks from them. The owner adds them to its own in the order r−1, r−2, …, whatever order they arrive in, so
/// results do not depend on timing. The sums of this rank's part go to `target`. If that is the output, it is written
/// only when the sums are complete. Latency of one message; n−1 messages, S·(n−1)/n bytes.
void reduce_to_owners(const Op& op, const Parts& inputs, Piece target, const Team& team, Schedule& schedule);

/// Plans that every owner sends its part to all others. Latency of one message; n−1 messages, S·(n−1)/n bytes.
void spread_from_owners(const Parts& outputs, const Team& team, Schedule& schedule);

}  // namespace ringwise::coll
