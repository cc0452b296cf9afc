// Chooses the table of CPU kernels by instruction set.
#include <algorithm>

#include "tensor/cpu/levels.h"

namespace ringwise::tensor {

const Kernels& kernels_for(CpuLevel cap) {
  switch (std::min(cap, best_cpu_level())) {
#if defined(RINGWISE_X86_LEVELS)
    case CpuLevel::Avx512: return kAvx512Kernels;
    case CpuLevel::Avx2: return kAvx2Kernels;
#endif
    default: return kBaselineKernels;
  }
}

}  // namespace ringwise::tensor
