// What the algorithms that reduce have in common: how a rank's contribution becomes partial sums, and partial sums the
// result. "Sum" stands for any reduction.
//
// Partial sums of halves are float32, also where they travel, so that a result is rounded once, whatever the algorithm;
// it costs twice the bytes wherever sums of several ranks travel. All other types are summed in themselves.
#pragma once

#include "coll/plan/schedule.h"
#include "coll/plan/topology.h"

namespace ringwise::coll {

/// This rank's contribution over `input`, as it may be sent or folded: premulSum scales it.
Piece contribution(const Op& op, Piece input, Schedule& schedule);

/// The same as partial sums: of halves, a float32 copy in scratch.
Piece widened(const Op& op, Piece sums, Schedule& schedule);

/// Scratch for the partial sums of `count` elements.
Piece scratch_sums(const Op& op, size_t count, Schedule& schedule);

/// Where the last sums that go to `output` may be built: right there, or, for halves, in scratch.
Piece accumulator_for(const Op& op, Piece output, Schedule& schedule);

/// Makes complete sums the result: rounds halves, divides for avg, and moves them to `output` if they are not there.
/// Waits for the first `after` sends.
void finish(const Op& op, Piece output, Piece sums, Schedule& schedule, size_t after);

/// `count` elements of a piece from element `begin` on, as many as there are.
Piece slice(const Op& op, Piece piece, size_t begin, size_t count);

}  // namespace ringwise::coll
