// Adds normalisation, attention, random numbers and dropout to a kernel table. On CUDA these take float16 and bfloat16
// as well: they compute in float, and what belongs to a row (means, log Σ exp) is float32 then.
#pragma once

#include "tensor/kernels.h"

namespace ringwise::tensor::cuda {

void add_norms(Kernels& table);
void add_random(Kernels& table);
void add_attention(Kernels& table);

}  // namespace ringwise::tensor::cuda
