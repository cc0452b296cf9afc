// Rabenseifner's decomposition of all-reduce ("Optimization of Collective Reduction Operations", ICCS 2004): a
// reduce-scatter, then an all-gather, both by direct exchange instead of recursive halving and doubling. Narrow
// floats travel as they are and are rounded once. Latency of 2 messages; 2(n−1) messages, 2·S·(n−1)/n bytes.
#include "coll/algo/algorithms.h"
#include "coll/algo/parts.h"
#include "coll/algo/sums.h"

namespace ringwise::coll {

void two_shot_all_reduce(const Op& op, Piece sums, Piece output, const Team& team, Schedule& schedule) {
  const Parts inputs = Parts::cut(sums, op.dtype, team.size);
  const Parts outputs = Parts::cut(output, op.dtype, team.size);
  const Piece mine = outputs.of(team.index);
  const Piece accumulator = accumulator_for(op, mine, schedule);
  reduce_to_owners(op, inputs, accumulator, team, schedule);
  finish(op, mine, accumulator, schedule, schedule.sends.size());
  spread_from_owners(outputs, team, schedule);
}

}  // namespace ringwise::coll
