// Bruck's all-gather (Bruck, Ho, Kipnis, Upfal, Weathersby, "Efficient algorithms for all-to-all communications in
// multiport message-passing systems", 1997). Every rank r collects the inputs of r, r+1, … in this order. In round k it
// sends the first 2^k of them to r−2^k and appends those that it receives from r+2^k. At the end it rotates them into
// rank order. ⌈log2 n⌉ steps, S·(n−1)/n bytes for a result of S, and one copy of the result. For small inputs of many
// ranks.
#include <algorithm>

#include "coll/algo/algorithms.h"
#include "coll/algo/parts.h"

namespace ringwise::coll {

void bruck_all_gather(const Op& op, int rank, int size, Schedule& schedule) {
  const Parts outputs = Parts::per_rank(Region::Output, op.dtype, size, op.count, op.counts);
  const size_t element = byte_size(op.dtype);
  const size_t all = outputs.range(0, size).count;
  const size_t turned = schedule.scratch(all * element);
  // Counts the elements of `count` inputs from rank `first` on, wrapping around after the last rank.
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
  // Parts may be empty, and then no message tells that a rank has entered the operation: all ranks exchange handshakes.
  if (op.counts != nullptr || op.count == 0) return handshake_all(rank, size, schedule);
  schedule.handshake_partners();
}

}  // namespace ringwise::coll
