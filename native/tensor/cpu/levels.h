// The tables of all instruction sets, which the build compiles from level.cc.in. Processors other than x86-64 have only
// the baseline, for which the compiler's own vectors are used (NEON on arm64).
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
