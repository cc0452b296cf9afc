// One step of stochastic gradient descent, fused into one kernel. C++17, because nvcc includes it.
#pragma once

#include <cstddef>

namespace ringwise::tensor {

struct SgdOptions {
  float lr = 0;
  float momentum = 0;
  float dampening = 0;
  float weight_decay = 0;
  bool nesterov = false;
  bool first = false;  // the velocity becomes the gradient instead of being decayed
};

/// Updates param, and velocity unless it is null, in device memory, in order on `stream` (a cudaStream_t; null is the
/// default stream). Returns at once: null, or the text of the error that kept the kernel from starting.
const char* sgd_cuda(float* param, const float* grad, float* velocity, const SgdOptions& options, size_t count,
                     void* stream);

}  // namespace ringwise::tensor
