// Pairwise exchange (Thakur, Rabenseifner, Gropp, "Optimization of Collective Communication Operations in MPICH",
// 2005): in step k, rank r sends part r+k to its owner and adds its own part from rank r−k. n−1 steps, S·(n−1)/n bytes.
#include "coll/algo/algorithms.h"
#include "coll/algo/parts.h"
#include "coll/algo/sums.h"

namespace ringwise::coll {

void direct_reduce_scatter(const Op& op, int rank, int size, Schedule& schedule) {
  const Parts inputs = Parts::per_rank(Region::Input, op.dtype, size, op.count, op.counts);
  const Piece sums = scratch_sums(op, inputs.of(rank).count, schedule);
  handshake_all(rank, size, schedule);
  reduce_to_owners(op, inputs.moved(contribution(op, inputs.range(0, size), schedule)), sums, {rank, size}, schedule);
  finish(op, {Region::Output, 0, sums.count}, sums, schedule, schedule.sends.size());
}

}  // namespace ringwise::coll
