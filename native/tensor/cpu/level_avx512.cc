// The kernels for CPUs with the AVX-512 of the first server chips that had it (F, BW, DQ, VL).
#include "tensor/cpu/level_headers.h"

#if defined(__x86_64__)
RINGWISE_TARGET_BEGIN("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")
#define RINGWISE_LEVEL avx512
#define RINGWISE_VECTOR_BYTES 64
#include "tensor/cpu/level.h"
RINGWISE_TARGET_END

namespace ringwise::tensor {
const Kernels kAvx512Kernels = avx512::make_kernels(CpuLevel::Avx512, "avx512");
}
#endif
