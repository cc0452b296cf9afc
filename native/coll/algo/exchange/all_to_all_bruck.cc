// Bruck's all-to-all (Bruck, Ho, Kipnis, Upfal, Weathersby 1997), for small even parts. Every part travels along the
// binary digits of the distance from its sender to its receiver: in round k, rank r sends to r+2^k all parts whose
// distance has bit k set. ⌈log2 n⌉ steps of n/2 parts each: ⌈log2 n⌉·S/2 bytes for an input of S. Direct exchange needs
// n−1 steps but sends every part only once.
#include <algorithm>

#include "coll/algo/algorithms.h"

namespace ringwise::coll {

void bruck_all_to_all(const Op& op, int rank, int size, Schedule& schedule) {
  const size_t bytes = op.count * byte_size(op.dtype);
  const auto parts = [&](size_t base, int first, int count) {
    return Piece{Region::Scratch, base + first * bytes, count * op.count};
  };
  // Parts by distance from their sender to their receiver: at first this rank's parts for r, r+1, …. In the end, the
  // part at each distance is the one for this rank from the rank that far before it.
  const size_t turned = schedule.scratch(size * bytes);
  const size_t outgoing = schedule.scratch(size * bytes), incoming = schedule.scratch(size * bytes);

  schedule.work(Local::Copy, parts(turned, 0, size - rank), {Region::Input, rank * bytes, (size - rank) * op.count});
  schedule.work(Local::Copy, parts(turned, size - rank, rank), {Region::Input, 0, rank * op.count});
  for (int bit = 1; bit < size; bit *= 2) {
    int moving = 0;
    for (int first = bit; first < size; first += 2 * bit) {
      const int count = std::min(bit, size - first);
      schedule.work(Local::Copy, parts(outgoing, moving, count), parts(turned, first, count));
      moving += count;
    }
    schedule.exchange((rank + bit) % size, parts(outgoing, 0, moving), (rank - bit + size) % size,
                      parts(incoming, 0, moving), Take::Store);
    moving = 0;
    for (int first = bit; first < size; first += 2 * bit) {
      const int count = std::min(bit, size - first);
      schedule.work(Local::Copy, parts(turned, first, count), parts(incoming, moving, count));
      moving += count;
    }
  }
  for (int distance = 0; distance < size; ++distance) {
    const int from = (rank - distance + size) % size;
    schedule.work(Local::Copy, {Region::Output, from * bytes, op.count}, parts(turned, distance, 1));
  }
  if (op.count == 0) return handshake_all(rank, size, schedule);
  schedule.handshake_partners();
}

}  // namespace ringwise::coll
