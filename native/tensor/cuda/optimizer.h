// Kernels over many tensors: the host's side of kernels/optimizer.cu.
#pragma once

#include <cstddef>

#include "tensor/optimizer.h"

namespace ringwise::tensor::cuda {

// As the members of tensor::Kernels of these names.
void optimize(const OptimizerRule& rule, const OptimizerTensor* tensors, size_t count);
void start_total_norm(const OptimizerTensor* tensors, size_t count, float* norm);
void start_scale(const OptimizerTensor* tensors, size_t count, const float* factor, double number, float* not_finite);

}  // namespace ringwise::tensor::cuda
