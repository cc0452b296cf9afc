// The CUDA driver by its names here; see base/cuda/cuda_driver.h.
#pragma once

#include "base/cuda/cuda_driver.h"

namespace ringwise::tensor::cuda {
using namespace ringwise::cuda;
using ringwise::cuda::Stream;  // not that of random numbers
}  // namespace ringwise::tensor::cuda
