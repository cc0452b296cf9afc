// The kernels for every processor of the architecture: SSE2 on x86-64, NEON on arm64.
#include "coll/reduce/level_headers.h"

#define RINGWISE_LEVEL baseline
// clang-format off: each of these headers uses those before it
#include "coll/reduce/level.h"
#include "coll/reduce/grid_level.h"
#include "coll/reduce/grid_combine_level.h"
#include "coll/reduce/int8_level.h"
// clang-format on

namespace ringwise::coll {
extern const ReduceKernels kBaselineReduce = baseline::kKernels;
extern const GridKernels kBaselineGrid = baseline::kGridKernels;
extern const Int8Kernels kBaselineInt8 = baseline::kInt8Kernels;
}  // namespace ringwise::coll
