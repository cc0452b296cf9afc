// Hierarchical all-reduce for several hosts with several ranks each. The buffer is cut into as many parts as the
// smallest host has ranks. First, the ranks of a host sum part c at the host's rank number c, through shared memory.
// Then the ranks of number c on all hosts, a column, all-reduce that part over the network. Last, each host spreads the
// results among its ranks. So a host's network link carries every part once, not once per rank, and all ranks share the
// work. (As in BlueConnect: Cho et al., "BlueConnect: Decomposing all-reduce for deep learning on heterogeneous network
// hierarchy", 2019.) For hosts with p ranks, each rank sends 2·S·(p−1)/p bytes inside its host. Between hosts it sends
// what the columns' algorithm needs for a buffer of S/p bytes; for two hosts that is S/p. Narrow floats (halves and
// float8) travel between hosts as float32.
#include "coll/algo/algorithms.h"
#include "coll/algo/parts.h"
#include "coll/algo/sums.h"
#include "coll/plan/choose.h"

namespace ringwise::coll {

void hierarchical_all_reduce(const Op& op, Piece sums, Piece output, const Topology& topology, Schedule& schedule) {
  const Team host = topology.host();
  const int columns = topology.hosts->columns();
  const Parts inputs = Parts::cut(sums, op.dtype, columns);
  const Parts outputs = Parts::cut(output, op.dtype, columns);
  const Piece mine = outputs.of(host.index);
  Piece part;
  if (host.size > 1) {
    part = scratch_sums(op, mine.count, schedule);
    reduce_to_owners(op, inputs, part, host, schedule);
  } else {
    part = widened(op, inputs.of(host.index), schedule);  // in the accumulator type, like the sums of other hosts
  }
  if (host.index < columns) {
    const auto all_reduce = between_hosts(op, mine.count * byte_size(op.dtype), topology);
    all_reduce(op, part, mine, topology.column(), schedule);
  }
  spread_from_owners(outputs, host, schedule);
}

}  // namespace ringwise::coll
