// Helpers of the algorithms that reduce: turn a rank's contribution into partial sums, and complete sums into the
// result. "Sum" stands for any reduction.
//
// Partial sums of narrow floats (halves and float8) are float32, also in messages, so that every algorithm rounds a
// result only once; premulSum rounds the scaled inputs too. Messages with sums of several ranks are longer for that:
// twice as long for halves, four times for float8. All other types are summed in their own type.
#pragma once

#include "coll/plan/schedule.h"
#include "coll/plan/topology.h"

namespace ringwise::coll {

/// Returns this rank's contribution, ready to be sent or reduced: `input`, or a scaled copy for premulSum.
Piece contribution(const Op& op, Piece input, Schedule& schedule);

/// Returns `sums` in the accumulator type: for narrow floats a float32 copy in scratch.
Piece widened(const Op& op, Piece sums, Schedule& schedule);

/// Reserves scratch for the partial sums of `count` elements.
Piece scratch_sums(const Op& op, size_t count, Schedule& schedule);

/// Returns the memory in which to complete the sums for `output`: the output itself, or scratch for narrow floats.
Piece accumulator_for(const Op& op, Piece output, Schedule& schedule);

/// Plans the work that turns complete sums into the result: it rounds narrow floats, divides for avg, and copies to
/// `output` if needed. The work waits for the first `after` sends.
void finish(const Op& op, Piece output, Piece sums, Schedule& schedule, size_t after);

/// Returns up to `count` elements of a piece, from element `begin` on.
Piece slice(const Op& op, Piece piece, size_t begin, size_t count);

}  // namespace ringwise::coll
