#include <cuda_runtime.h>

#include "tensor/cuda/device.h"

namespace ringwise::tensor {

CudaInfo cuda_info() {
  CudaInfo info{true, {}, ""};
  int count = 0;
  // Every failure means no devices; without a driver it is "driver version is insufficient".
  cudaError_t status = cudaGetDeviceCount(&count);
  for (int i = 0; i < count && status == cudaSuccess; i++) {
    cudaDeviceProp properties;
    status = cudaGetDeviceProperties(&properties, i);
    if (status != cudaSuccess) break;
    info.devices.push_back({properties.name, properties.totalGlobalMem, properties.major, properties.minor});
  }
  if (status != cudaSuccess) {
    int driver = 0;
    info.devices.clear();
    cudaDriverGetVersion(&driver);  // 0 without a driver
    info.reason = driver == 0 ? "no CUDA driver is installed (libcuda.so.1)" : cudaGetErrorString(status);
    cudaGetLastError();  // errors stick to the thread otherwise
  } else if (count == 0) {
    info.reason = "the driver reports no devices";
  }
  return info;
}

}  // namespace ringwise::tensor
