// Direct exchange: rank r sends its input to r+1, r+2, … and receives those of r−1, r−2, …. No input passes through a
// third rank, so it suits networks in which every pair has its own path. Latency of one message; n−1 messages,
// S·(n−1)/n bytes for a result of S.
#include "coll/algo/algorithms.h"
#include "coll/algo/parts.h"

namespace ringwise::coll {

void direct_all_gather(const Op& op, int rank, int size, Schedule& schedule) {
  const Parts outputs = Parts::per_rank(Region::Output, op.dtype, size, op.count, op.counts);
  const Piece input{Region::Input, 0, outputs.of(rank).count};
  handshake_all(rank, size, schedule);
  for (int k = 1; k < size; ++k) {
    const int from = (rank - k + size) % size;
    schedule.send((rank + k) % size, input, 0);
    schedule.receive(from, outputs.of(from), Take::Store, 0);
  }
  schedule.work(Local::Copy, outputs.of(rank), input);
}

}  // namespace ringwise::coll
