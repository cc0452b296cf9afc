#include "tensor/cuda/device.h"

namespace ringwise::tensor {

CudaInfo cuda_info() {
  return {false, {}, "this build has no CUDA kernels; build it where nvcc is installed, or with CUDACXX set"};
}

}  // namespace ringwise::tensor
