// Exports to JavaScript the kernels of reproducible sums, which round all summands to multiples of a common grid
// (coll/reduce/grid.h): { raise, add, finish }. `raise` records the largest exponent of each element,
// `add` adds the summands of a rank, `finish` computes the sums.
#pragma once

#include <napi.h>

namespace ringwise::node {

/// Returns a new object with the three functions.
Napi::Object define_grid(Napi::Env env);

}  // namespace ringwise::node
