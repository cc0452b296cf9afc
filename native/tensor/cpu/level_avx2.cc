// The kernels for CPUs with AVX2 and FMA.
#include "tensor/cpu/level_headers.h"

#if defined(__x86_64__)
RINGWISE_TARGET_BEGIN("avx2,fma,f16c")
#define RINGWISE_LEVEL avx2
#define RINGWISE_VECTOR_BYTES 32
#include "tensor/cpu/level.h"
RINGWISE_TARGET_END

namespace ringwise::tensor {
const Kernels kAvx2Kernels = avx2::make_kernels(CpuLevel::Avx2, "avx2");
}
#endif
