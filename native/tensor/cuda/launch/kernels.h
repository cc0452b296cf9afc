// The kernels of CUDA: the same functions as those of a CPU (tensor/kernels.h), over device memory. They fill a block
// of arguments, start a kernel on the stream of the thread's device and return at once; errors of the driver are
// thrown.
#pragma once

#include "tensor/kernels.h"

namespace ringwise::tensor::cuda {

#define RINGWISE_DECLARE(kernel, Type) void kernel(const Type&);
RINGWISE_EACH_KERNEL(RINGWISE_DECLARE)
#undef RINGWISE_DECLARE

/// Returns the table of these functions. The caller of one of them has entered a device (device.h).
const Kernels& kernels();

}  // namespace ringwise::tensor::cuda
