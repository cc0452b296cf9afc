// Imports the names of the CUDA driver into this namespace; see base/cuda/cuda_driver.h.
#pragma once

#include "base/cuda/cuda_driver.h"

namespace ringwise::tensor::cuda {
using namespace ringwise::cuda;
using ringwise::cuda::Stream;  // takes precedence over the Stream of random numbers
}  // namespace ringwise::tensor::cuda
