// Every rank sends its part directly to the root. Every part is sent once. n−1 steps and S·(n−1)/n bytes at the root
// for a result of S, one step elsewhere.
#include "coll/algo/algorithms.h"
#include "coll/algo/parts.h"

namespace ringwise::coll {

void direct_gather(const Op& op, int rank, int size, Schedule& schedule) {
  const Parts outputs = Parts::per_rank(Region::Output, op.dtype, size, op.count, op.counts);
  const Piece input{Region::Input, 0, outputs.of(rank).count};
  handshake_all(rank, size, schedule);
  if (rank != op.root) return schedule.exchange(op.root, input, -1, {}, Take::Store);
  for (int k = 1; k < size; ++k) {
    const int from = (rank - k + size) % size;
    schedule.exchange(-1, {}, from, outputs.of(from), Take::Store);
  }
  schedule.work(Local::Copy, outputs.of(rank), input);
}

}  // namespace ringwise::coll
