// Every kernel once, at one instruction set. level_<name>.cc defines RINGWISE_LEVEL (a namespace) and
// RINGWISE_VECTOR_BYTES, switches the compiler to that instruction set and includes this file; the library headers
// come before that switch (level_headers.h), so that nothing from them is compiled for a CPU that may be absent.
// clang-format off: each header uses the ones before it
#include "tensor/cpu/simd.h"
#include "tensor/cpu/elementwise/transpose.h"
#include "tensor/cpu/elementwise/math.h"
#include "tensor/cpu/elementwise/functions.h"
#include "tensor/cpu/elementwise/tile.h"
#include "tensor/cpu/elementwise/movement.h"
#include "tensor/cpu/elementwise/map.h"
#include "tensor/cpu/reduce/reduce.h"
#include "tensor/cpu/reduce/lookup.h"
#include "tensor/cpu/reduce/order.h"
#include "tensor/cpu/nn/softmax.h"
#include "tensor/cpu/nn/cross_entropy.h"
#include "tensor/cpu/matrix/gemm_kernel.h"
#include "tensor/cpu/matrix/gemm_pack.h"
#include "tensor/cpu/elementwise/activation.h"
#include "tensor/cpu/matrix/gemm_dot.h"
#include "tensor/cpu/matrix/gemm_store.h"
#include "tensor/cpu/matrix/gemm.h"
#include "tensor/cpu/matrix/linear.h"
#include "tensor/cpu/nn/conv.h"
#include "tensor/cpu/nn/pool.h"
#include "tensor/cpu/nn/channels.h"
#include "tensor/cpu/optimizer.h"
#include "tensor/cpu/nn/norm.h"
#include "tensor/cpu/philox.h"
#include "tensor/cpu/nn/attention.h"
#include "tensor/cpu/nn/attention_grad.h"
#include "tensor/cpu/nn/attention_double.h"
// clang-format on

namespace ringwise::tensor::RINGWISE_LEVEL {

constexpr Kernels make_kernels(CpuLevel level, const char* name) {
  Kernels k{};
  k.level = level;
  k.name = name;
#define RINGWISE_SET(kernel, Type) k.kernel = &kernel;
  RINGWISE_EACH_KERNEL(RINGWISE_SET)
#undef RINGWISE_SET
  return k;
}

}  // namespace ringwise::tensor::RINGWISE_LEVEL
