// What CUDA there is. device.cu is compiled where nvcc was found and no_cuda.cc elsewhere, so no caller asks how the
// addon was built. C++17, because nvcc includes it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ringwise::tensor {

struct CudaDevice {
  std::string name;
  uint64_t memory_bytes;
  int major, minor;  // compute capability
};

struct CudaInfo {
  bool compiled;                    // this build has CUDA kernels
  std::vector<CudaDevice> devices;  // empty when there are none, or when the driver is absent or too old
  std::string reason;               // why there are none; empty when there are some
};

/// Asks the driver, and loads it at the first call. Never throws for what it finds.
CudaInfo cuda_info();

}  // namespace ringwise::tensor
