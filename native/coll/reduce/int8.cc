#include "coll/reduce/int8.h"

#include <algorithm>

namespace ringwise::coll {

extern const Int8Kernels kBaselineInt8;
#if defined(__x86_64__) && !defined(RINGWISE_BASELINE_ONLY)
extern const Int8Kernels kAvx2Int8, kAvx512Int8;
#endif

const Int8Kernels& int8_kernels(CpuLevel cap) {
  switch (std::min(cap, best_cpu_level())) {
#if defined(__x86_64__) && !defined(RINGWISE_BASELINE_ONLY)
    case CpuLevel::Avx512: return kAvx512Int8;
    case CpuLevel::Avx2: return kAvx2Int8;
#endif
    default: return kBaselineInt8;
  }
}

}  // namespace ringwise::coll
