// Pairwise exchange (Thakur, Rabenseifner, Gropp 2005): in step k, rank r sends to r+k and receives from r−k. So every
// rank exchanges data with one other at a time in each direction, and no two ranks send to the same one. Latency of one
// message; n−1 messages, S·(n−1)/n bytes for an input of S.
#include "coll/algo/algorithms.h"
#include "coll/algo/parts.h"

namespace ringwise::coll {

void pairwise_all_to_all(const Op& op, int rank, int size, Schedule& schedule) {
  const Parts inputs = Parts::per_rank(Region::Input, op.dtype, size, op.count, op.counts);
  const Parts outputs = Parts::per_rank(Region::Output, op.dtype, size, op.count, op.recv_counts);
  handshake_all(rank, size, schedule);
  for (int k = 1; k < size; ++k) {
    const int to = (rank + k) % size, from = (rank - k + size) % size;
    schedule.send(to, inputs.of(to), 0);
    schedule.receive(from, outputs.of(from), Take::Store, 0);
  }
  schedule.work(Local::Copy, outputs.of(rank), inputs.of(rank));
}

}  // namespace ringwise::coll
