// The root sends every rank its part directly. Every part is sent once. n−1 steps and S·(n−1)/n bytes at the root for
// an input of S, one step elsewhere.
#include "coll/algo/algorithms.h"
#include "coll/algo/parts.h"

namespace ringwise::coll {

void direct_scatter(const Op& op, int rank, int size, Schedule& schedule) {
  const Parts inputs = Parts::per_rank(Region::Input, op.dtype, size, op.count, op.counts);
  const Piece output{Region::Output, 0, inputs.of(rank).count};
  handshake_all(rank, size, schedule);
  if (rank != op.root) return schedule.exchange(-1, {}, op.root, output, Take::Store);
  for (int k = 1; k < size; ++k) {
    const int to = (rank + k) % size;
    schedule.exchange(to, inputs.of(to), -1, {}, Take::Store);
  }
  schedule.work(Local::Copy, output, inputs.of(rank));
}

}  // namespace ringwise::coll
