// The kernels of CUDA: the same functions as those of a CPU (tensor/kernels.h), over device memory. They fill a struct
// of arguments, start one or more kernels on the calling thread's stream, and return before these have run. They throw
// errors of the driver.
#pragma once

#include "tensor/kernels.h"

namespace ringwise::tensor::cuda {

#define RINGWISE_DECLARE(kernel, Type) void kernel(const Type&);
RINGWISE_EACH_KERNEL(RINGWISE_DECLARE)
#undef RINGWISE_DECLARE

/// Returns the table of these functions. A thread must have entered a device (Device::enter) before it calls one.
const Kernels& kernels();

}  // namespace ringwise::tensor::cuda
