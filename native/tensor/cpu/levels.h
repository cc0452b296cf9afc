// The tables that level_<name>.cc make. On other processors than x86-64 there is only the baseline, which the
// compiler's own vectors (NEON on arm64) serve.
#pragma once

#include "tensor/kernels.h"

// RINGWISE_BASELINE_ONLY leaves the wide levels out of a build with sanitizers.
#if defined(__x86_64__) && !defined(RINGWISE_BASELINE_ONLY)
#define RINGWISE_X86_LEVELS 1
#endif

namespace ringwise::tensor {

extern const Kernels kBaselineKernels;
#if defined(RINGWISE_X86_LEVELS)
extern const Kernels kAvx2Kernels;
extern const Kernels kAvx512Kernels;
#endif

}  // namespace ringwise::tensor
