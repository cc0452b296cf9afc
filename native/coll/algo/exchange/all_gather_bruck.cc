// Bruck's all-gather (Bruck, Ho, Kipnis, Upfal, Weathersby, "Efficient algorithms for all-to-all communications in
// multiport message-passing systems", 1997). Every rank r keeps the inputs of r, r+1, … in this order; in round k it
// sends the first 2^k of them to r−2^k and appends those of r+2^k. At the end they are rotated into rank order.
// ⌈log2 n⌉ steps, S·(n−1)/n bytes for a result of S, and a copy of the result: for small inputs of many ranks.
#include <algorithm>

#include "coll/algo/algorithms.h"
#include "coll/algo/parts.h"

namespace ringwise::coll {

void bruck_all_gather(const Op& op, int rank, int size, Schedule& schedule) {
  const Parts outputs = Parts::per_rank(Region::Output, op.dtype, size, op.count, op.counts);
  const size_t element = byte_size(op.dtype);
  const size_t all = outputs.range(0, size).count;
  const size_t turned = schedule.scratch(all * element);
  /// Elements of the first `count` inputs from rank `first` on, around the end.
  const auto elements = [&](int first, int count) {
    const int end = first + count;
    return outputs.range(first, std::min(end, size)).count + (end > size ? outputs.range(0, end - size).count : 0);
  };

  schedule.work(Local::Copy, {Region::Scratch, turned, elements(rank, 1)}, {Region::Input, 0, elements(rank, 1)});
  for (int distance = 1; distance < size; distance *= 2) {
    const int count = std::min(distance, size - distance);
    const int from = (rank + distance) % size;
    schedule.exchange((rank - distance + size) % size, {Region::Scratch, turned, elements(rank, count)}, from,
                      {Region::Scratch, turned + elements(rank, distance) * element, elements(from, count)},
                      Take::Store);
  }
  const Piece behind = outputs.range(rank, size), before = outputs.range(0, rank);
  schedule.work(Local::Copy, behind, {Region::Scratch, turned, behind.count});
  schedule.work(Local::Copy, before, {Region::Scratch, turned + behind.count * element, before.count});
  // Parts that may be empty say nothing about the ranks that they come from.
  if (op.counts != nullptr || op.count == 0) return handshake_all(rank, size, schedule);
  schedule.handshake_partners();
}

}  // namespace ringwise::coll
