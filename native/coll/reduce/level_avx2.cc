// The kernels for processors with AVX2.
#include "coll/reduce/level_headers.h"

#if defined(__x86_64__)
RINGWISE_TARGET_BEGIN("avx2,fma,f16c")
#define RINGWISE_LEVEL avx2
#include "coll/reduce/level.h"
RINGWISE_TARGET_END

namespace ringwise::coll {
extern const ReduceKernels kAvx2Reduce = avx2::kKernels;
}
#endif
