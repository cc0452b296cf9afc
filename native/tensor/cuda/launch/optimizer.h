// Kernels over many tensors: the host's side of kernels/optimizer.cu.
#pragma once

#include <cstddef>
#include <vector>

#include "tensor/optimizer.h"

namespace ringwise::tensor::cuda {

/// What changes from step to step, as a captured step keeps it in device memory: kOptimizerNumbers of the rule, then
/// kOptimizerRowNumbers for each tensor, of which `steps` says how often it has been changed, this time included.
std::vector<double> optimizer_numbers(const OptimizerRule& rule, const double* steps, size_t count);

}  // namespace ringwise::tensor::cuda
