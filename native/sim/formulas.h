// The times of the algorithms according to the literature, in the simulation's model with one rank per host and no
// contention. The simulation must give exactly these times.
#pragma once

#include <optional>

#include "coll/plan/choose.h"
#include "sim/network.h"

namespace ringwise::sim {

/// Returns the time of an operation. `bytes` counts the whole buffer of the larger side, as in the benchmarks. Returns
/// nothing if there is no closed form for these ranks and bytes, for example with parts of unequal length.
std::optional<Time> formula(coll::Verb verb, const coll::Algorithm& algorithm, int ranks, size_t bytes,
                            const Cost& cost);

}  // namespace ringwise::sim
