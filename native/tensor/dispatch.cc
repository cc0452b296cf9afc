#include <algorithm>

#include "tensor/cpu/levels.h"

namespace ringwise::tensor {

CpuLevel best_cpu_level() {
#if defined(RINGWISE_X86_LEVELS)
  __builtin_cpu_init();
  const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const bool has_avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (has_avx2 && has_avx512) return CpuLevel::Avx512;
  if (has_avx2) return CpuLevel::Avx2;
#endif
  return CpuLevel::Baseline;
}

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
