// What the literature says an algorithm takes, in the simulation's model, where every rank has a host of its own and
// nothing is in the way: the simulation has to give exactly this.
#pragma once

#include <optional>

#include "coll/plan/choose.h"
#include "sim/network.h"

namespace ringwise::sim {

/// `bytes` as the benches define them: the whole buffer, of the larger side. Nothing where there is no closed form for
/// these ranks and bytes, as for parts of unlike length.
std::optional<Time> formula(coll::Verb verb, const coll::Algorithm& algorithm, int ranks, size_t bytes,
                            const Cost& cost);

}  // namespace ringwise::sim
