#include "tensor/cuda/launch/kernels.h"

namespace ringwise::tensor::cuda {

namespace {

Kernels make_kernels() {
  Kernels k{};
  k.name = "cuda";
#define RINGWISE_SET(kernel, Type) k.kernel = &kernel;
  RINGWISE_EACH_KERNEL(RINGWISE_SET)
#undef RINGWISE_SET
  return k;
}

}  // namespace

const Kernels& kernels() {
  static const Kernels table = make_kernels();
  return table;
}

}  // namespace ringwise::tensor::cuda
