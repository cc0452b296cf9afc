#include "coll/reduce/grid.h"

#include <algorithm>

namespace ringwise::coll {

extern const GridKernels kBaselineGrid;
#if defined(__x86_64__) && !defined(RINGWISE_BASELINE_ONLY)
extern const GridKernels kAvx2Grid, kAvx512Grid;
#endif

const GridKernels& grid_kernels(CpuLevel cap) {
  switch (std::min(cap, best_cpu_level())) {
#if defined(__x86_64__) && !defined(RINGWISE_BASELINE_ONLY)
    case CpuLevel::Avx512: return kAvx512Grid;
    case CpuLevel::Avx2: return kAvx2Grid;
#endif
    default: return kBaselineGrid;
  }
}

}  // namespace ringwise::coll
