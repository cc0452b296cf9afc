// The times that the engine's waiting and the lane share.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/time/clock.h"
#include "coll/op.h"

namespace ringwise::coll {

// On an oversubscribed host (fewer than two cores per rank), a lane for which no thread waits would take the core from
// the program's computation. It advances pending operations only at these intervals.
constexpr int64_t kDriftNs = 1 * kMillisecond;

// A rank asks all ranks what they are doing this long before the deadline (or after half of a short timeout), so that
// the report of a timeout is fresh.
constexpr int64_t kLastQuestionNs = 200 * kMillisecond;

/// Returns the time at which to ask all ranks which ranks delay `op`.
inline int64_t last_question_ns(const Op& op) { return op.deadline_ns - std::min(kLastQuestionNs, op.timeout_ns / 2); }

}  // namespace ringwise::coll
