// Hierarchical all-reduce for several hosts with several ranks each. The buffer is cut into as many parts as the
// smallest host has ranks. The ranks of a host sum part c at their rank number c, by shared memory; those of number c
// on all hosts, a column, all-reduce it over the network; and each host spreads its results inside. So a host's link
// carries every part once, not once per rank, and all ranks work on it.
// (The same in BlueConnect: Cho et al., "BlueConnect: Decomposing all-reduce for deep learning on heterogeneous network
// hierarchy", 2019.) For h hosts with p ranks: between hosts S/p bytes per rank as the columns' algorithm says, which
// for two hosts is S/p; inside 2·S·(p−1)/p. Halves travel between hosts as float32.
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
    part = widened(op, inputs.of(host.index), schedule);  // as the sums of other hosts are
  }
  if (host.index < columns) {
    const auto all_reduce = between_hosts(op, mine.count * byte_size(op.dtype), topology);
    all_reduce(op, part, mine, topology.column(), schedule);
  }
  spread_from_owners(outputs, host, schedule);
}

}  // namespace ringwise::coll
