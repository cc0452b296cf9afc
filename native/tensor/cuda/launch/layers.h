// Convolution, pooling and sums by channel: the host's side of kernels/layers.cu.
#pragma once

#include "tensor/kernels.h"

namespace ringwise::tensor::cuda {

/// Sets the members of a table that these kernels serve.
void add_layers(Kernels& table);

}  // namespace ringwise::tensor::cuda
