// Describes the CUDA driver and devices, without allocating device memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ringwise::tensor::cuda {

struct DeviceInfo {
  std::string name;
  uint64_t memory_bytes;
  int major, minor;  // compute capability
  int multiprocessors;
};

struct Info {
  bool is_compiled;                 // there are kernels to run (has_kernels)
  int kernels_version;              // version of CUDA that compiled the kernels, like driver_version; 0 without kernels
  std::string driver;               // path of the driver; empty if it was not found
  int driver_version;               // latest CUDA version that the driver supports; 13000 is 13.0; 0 without a driver
  std::vector<DeviceInfo> devices;  // empty if no device can be used
  std::string reason;               // why there are no devices; empty if there are some
};

/// Returns the information; loads the driver at the first call. Reports problems in `reason` and does not throw for
/// them.
Info info();

}  // namespace ringwise::tensor::cuda
