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
  k.map = &map;
  k.copy = &copy;
  k.reduce = &reduce;
  k.arg_reduce = &arg_reduce;
  k.matmul = &matmul;
  k.matmul_double = &matmul_double;
  k.linear = &linear;
  k.linear_grad = &linear_grad;
  k.log_softmax = &log_softmax;
  k.log_softmax_grad = &log_softmax_grad;
  k.nll = &nll;
  k.nll_grad = &nll_grad;
  k.cross_entropy = &cross_entropy;
  k.cross_entropy_grad = &cross_entropy_grad;
  k.lookup = &lookup;
  k.scatter_add = &scatter_add;
  k.cumsum = &cumsum;
  k.sort = &sort;
  k.triangle = &triangle;
  k.conv2d = &conv2d;
  k.conv2d_grad_input = &conv2d_grad_input;
  k.conv2d_grad_weight = &conv2d_grad_weight;
  k.max_pool = &max_pool;
  k.avg_pool = &avg_pool;
  k.avg_pool_grad = &avg_pool_grad;
  k.channel_moments = &channel_moments;
  k.channel_grad_sums = &channel_grad_sums;
  k.optimize = &optimize;
  k.total_norm = &total_norm;
  k.scale = &scale;
  k.norm = &norm;
  k.norm_grad = &norm_grad;
  k.attention = &attention;
  k.attention_grad = &attention_grad;
  k.random = &random;
  k.dropout = &dropout;
  return k;
}

}  // namespace ringwise::tensor::RINGWISE_LEVEL
