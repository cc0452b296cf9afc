// Exports to JavaScript the simulated network (native/sim), for `ringwise plan`.
#pragma once

#include <napi.h>

namespace ringwise::node {

/// Returns the function described at NativeAddon.simulate of packages/collectives/src/backends/native.ts.
Napi::Function define_simulate(Napi::Env env);

}  // namespace ringwise::node
