// The kernels for processors with the AVX-512 subsets F, BW, DQ and VL, which the first server chips with AVX-512 had.
#include "coll/reduce/level_headers.h"

#if defined(__x86_64__)
RINGWISE_TARGET_BEGIN("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")
#define RINGWISE_HAS_F16C
#define RINGWISE_LEVEL avx512
// clang-format off: each of these headers uses those before it
#include "coll/reduce/level.h"
#include "coll/reduce/grid_level.h"
#include "coll/reduce/grid_combine_level.h"
#include "coll/reduce/int8_level.h"
// clang-format on
RINGWISE_TARGET_END

namespace ringwise::coll {
extern const ReduceKernels kAvx512Reduce = avx512::kKernels;
extern const GridKernels kAvx512Grid = avx512::kGridKernels;
extern const Int8Kernels kAvx512Int8 = avx512::kInt8Kernels;
}  // namespace ringwise::coll
#endif
