// The algorithms, one file each, where the sources and costs are: per rank, for n ranks and a buffer of S bytes.
// Every function appends to an empty schedule what `rank` of `size` has to do.
#pragma once

#include "coll/plan/schedule.h"
#include "coll/plan/topology.h"

namespace ringwise::coll {

/// All-reduce among a team of at least two: `sums` is what this rank brings, `output` where the result goes. Nothing is
/// written to the output before every rank of the team has had a part in it. (One-shot: `sums` must not be wide.)
using TeamAllReduce = void(const Op& op, Piece sums, Piece output, const Team& team, Schedule& schedule);
TeamAllReduce one_shot_all_reduce, two_shot_all_reduce, ring_all_reduce, tree_all_reduce;
TeamAllReduce recursive_doubling_all_reduce, halving_doubling_all_reduce;
/// The same for operations whose wire is not full.
TeamAllReduce compressed_all_reduce;

/// The same for the whole group, host by host.
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

/// Nobody passes before everybody's signature has come. 1 step, n−1 signatures.
void handshake_barrier(const Op& op, int rank, int size, Schedule& schedule);

/// Exchanges handshakes with every other rank.
void handshake_all(int rank, int size, Schedule& schedule);

}  // namespace ringwise::coll
