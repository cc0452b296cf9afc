// Kernels over many tensors: the host's side of kernels/optimizer.cu.
#pragma once

#include <cstddef>
#include <vector>

#include "tensor/optimizer.h"

namespace ringwise::tensor::cuda {

/// Returns the numbers that change from step to step, as a captured step keeps them in device memory: kOptimizerNumbers
/// of the rule, then kOptimizerRowNumbers for each tensor. `steps` has the number of steps of each tensor, this one
/// included.
std::vector<double> optimizer_numbers(const OptimizerRule& rule, const double* steps, size_t count);

}  // namespace ringwise::tensor::cuda
