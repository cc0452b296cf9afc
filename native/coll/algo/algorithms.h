// The algorithms, one file each. Every function appends to an empty schedule what `rank` of `size` has to do.
// Costs are given per rank for n ranks and a buffer of S bytes.
#pragma once

#include "coll/schedule.h"

namespace ringwise::coll {

/// Everybody sends everything to everybody, then reduces in rank order. 1 step, (n−1)·S bytes.
void one_shot_all_reduce(const Op& op, int rank, int size, Schedule& schedule);

/// Reduce-scatter, then all-gather, both by direct exchange. 2(n−1) steps, 2·S·(n−1)/n bytes.
void two_shot_all_reduce(const Op& op, int rank, int size, Schedule& schedule);

/// In step k rank r sends part r+k to its owner and folds in its own part from r−k. n−1 steps, S·(n−1)/n bytes.
void direct_reduce_scatter(const Op& op, int rank, int size, Schedule& schedule);

/// In step k rank r sends its input to r+k and takes that of r−k. n−1 steps, (n−1) inputs.
void direct_all_gather(const Op& op, int rank, int size, Schedule& schedule);

/// Binomial tree from the root. ⌈log2 n⌉ steps, S bytes in, up to ⌈log2 n⌉·S out, n−1 signatures.
void tree_broadcast(const Op& op, int rank, int size, Schedule& schedule);

/// Nobody passes before everybody's signature has come. 1 step, n−1 signatures.
void greeting_barrier(const Op& op, int rank, int size, Schedule& schedule);

/// Greets every other rank, and waits for the greeting of each.
void greet_everyone(int rank, int size, Schedule& schedule);

}  // namespace ringwise::coll
