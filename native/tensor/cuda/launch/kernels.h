// The kernel table of the CPU (tensor/kernels.h), for CUDA: the same functions over device memory. They fill a block of
// arguments, start a kernel on the stream of the thread's device and return at once; errors of the driver are thrown.
#pragma once

#include "tensor/kernels.h"

namespace ringwise::tensor::cuda {

/// The caller of one of these has entered a device (device.h).
const Kernels& kernels();

}  // namespace ringwise::tensor::cuda
