// Codes of the errors that the addon throws.
#pragma once

#include "base/cuda/cuda_driver.h"

namespace ringwise::node {

/// Returns the code of an error of the driver: streams, graphs and contexts need device memory, too.
inline const char* code_of(const cuda::CudaError& error) {
  return error.status == cuda::kOutOfMemory ? "ERR_TENSOR_MEMORY" : "ERR_TENSOR_KERNELS";
}

}  // namespace ringwise::node
