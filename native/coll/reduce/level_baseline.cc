// The kernels for every processor of the architecture: SSE2 on x86-64, NEON on arm64.
#include "coll/reduce/level_headers.h"

#define RINGWISE_LEVEL baseline
#include "coll/reduce/level.h"

namespace ringwise::coll {
extern const ReduceKernels kBaselineReduce = baseline::kKernels;
}
