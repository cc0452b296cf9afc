// The kernels for processors with AVX2.
#include "coll/reduce/level_headers.h"

#if defined(__x86_64__)
RINGWISE_TARGET_BEGIN("avx2,fma,f16c")
#define RINGWISE_HAS_F16C
#define RINGWISE_LEVEL avx2
// clang-format off: each of these headers uses those before it
#include "coll/reduce/level.h"
#include "coll/reduce/grid_level.h"
#include "coll/reduce/grid_combine_level.h"
#include "coll/reduce/int8_level.h"
// clang-format on
RINGWISE_TARGET_END

namespace ringwise::coll {
extern const ReduceKernels kAvx2Reduce = avx2::kKernels;
extern const GridKernels kAvx2Grid = avx2::kGridKernels;
extern const Int8Kernels kAvx2Int8 = avx2::kInt8Kernels;
}  // namespace ringwise::coll
#endif
