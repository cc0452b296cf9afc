// The tables that level_<name>.cc make. On other processors than x86-64 there is only the baseline, which the
// compiler's own vectors (NEON on arm64) serve.
#pragma once

#include "tensor/kernels.h"

namespace ringwise::tensor {

extern const Kernels kBaselineKernels;
#if defined(__x86_64__)
extern const Kernels kAvx2Kernels;
extern const Kernels kAvx512Kernels;
#endif

}  // namespace ringwise::tensor
