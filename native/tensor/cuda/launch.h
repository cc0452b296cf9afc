// How kernels whose threads work alone are started: as many blocks as there is work for, up to what keeps the device
// busy; beyond that threads take turns.
#pragma once

#include <algorithm>
#include <bit>

#include "tensor/cuda/arguments.h"
#include "tensor/cuda/device.h"

namespace ringwise::tensor::cuda {

/// Threads for a block that shares `work`: a power of two.
inline int block_threads(size_t work) { return static_cast<int>(std::clamp<size_t>(std::bit_ceil(std::min<size_t>(work, kThreads)), 32, kThreads)); }

inline Grid grid_for(size_t count) {
  const size_t blocks = (count + kThreads - 1) / kThreads, most = static_cast<size_t>(current_device().multiprocessors()) * 32;
  return {static_cast<unsigned>(std::min(blocks, most))};
}

template <class Arguments>
void launch_over(size_t count, KernelId kernel, const Arguments& arguments) {
  if (count > 0) current_device().launch(kernel, grid_for(count), kThreads, arguments);
}

}  // namespace ringwise::tensor::cuda
