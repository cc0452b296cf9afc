// What CUDA there is, asked without touching a device's memory.
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
  bool is_compiled;                 // this build has kernels
  std::string driver;               // where the driver was found; empty when it was not
  int driver_version;               // of CUDA that the driver knows: 13000 is 13.0; 0 without a driver
  std::vector<DeviceInfo> devices;  // empty when there are none that could be used
  std::string reason;               // why there are none; empty when there are some
};

/// Loads the driver at the first call. Never throws for what it finds.
Info info();

}  // namespace ringwise::tensor::cuda
