// Exports the kernels of reproducible sums to JavaScript: { raise, add, finish }, see coll/reduce/grid.h.
#pragma once

#include <napi.h>

namespace ringwise::node {

Napi::Object define_grid(Napi::Env env);

}  // namespace ringwise::node
