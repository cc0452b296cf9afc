// The planning functions of all algorithms. Each algorithm has its own file, which gives its costs per rank, for n
// ranks and a buffer of S bytes, and its source if it was published. The functions add the sends and steps of one rank
// to a schedule.
#pragma once

#include "coll/plan/schedule.h"
#include "coll/plan/topology.h"

namespace ringwise::coll {

/// Plans an all-reduce among a team of at least two: `sums` is this rank's contribution, `output` gets the result. The
/// output is written only after data from every rank of the team has arrived, directly or through others. For one-shot,
/// `sums` must not be wide.
using TeamAllReduce = void(const Op& op, Piece sums, Piece output, const Team& team, Schedule& schedule);
TeamAllReduce one_shot_all_reduce, two_shot_all_reduce, ring_all_reduce, tree_all_reduce;
TeamAllReduce recursive_doubling_all_reduce, halving_doubling_all_reduce;
/// Plans an all-reduce for operations whose wire is not full.
TeamAllReduce compressed_all_reduce;

/// Plans an all-reduce of the whole group, inside the hosts and between them.
void hierarchical_all_reduce(const Op& op, Piece sums, Piece output, const Topology& topology, Schedule& schedule);

void direct_reduce_scatter(const Op& op, int rank, int size, Schedule& schedule);
void direct_all_gather(const Op& op, int rank, int size, Schedule& schedule);
void bruck_all_gather(const Op& op, int rank, int size, Schedule& schedule);
void pairwise_all_to_all(const Op& op, int rank, int size, Schedule& schedule);
void bruck_all_to_all(const Op& op, int rank, int size, Schedule& schedule);

void tree_broadcast(const Op& op, int rank, int size, Schedule& schedule);
void chain_broadcast(const Op& op, int rank, int size, Schedule& schedule);
void tree_reduce(const Op& op, int rank, int size, Schedule& schedule);
void two_shot_reduce(const Op& op, int rank, int size, Schedule& schedule);
void direct_gather(const Op& op, int rank, int size, Schedule& schedule);
void tree_gather(const Op& op, int rank, int size, Schedule& schedule);
void direct_scatter(const Op& op, int rank, int size, Schedule& schedule);
void tree_scatter(const Op& op, int rank, int size, Schedule& schedule);

/// Plans a barrier: each rank waits for the handshakes of all others. 1 step, n−1 signatures.
void handshake_barrier(const Op& op, int rank, int size, Schedule& schedule);

/// Plans handshakes with every other rank.
void handshake_all(int rank, int size, Schedule& schedule);

}  // namespace ringwise::coll
