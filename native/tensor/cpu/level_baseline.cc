// The kernels for every CPU of the architecture: SSE2 on x86-64, NEON on arm64.
#include "tensor/cpu/level_headers.h"

#define RINGWISE_LEVEL baseline
#define RINGWISE_VECTOR_BYTES 16
#include "tensor/cpu/level.h"

namespace ringwise::tensor {
const Kernels kBaselineKernels = baseline::make_kernels(CpuLevel::Baseline, "baseline");
}
