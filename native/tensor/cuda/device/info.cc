#include "tensor/cuda/device/info.h"

#include "tensor/cuda/device/driver.h"
#include "tensor/cuda/images/images.h"

namespace ringwise::tensor::cuda {

namespace {

DeviceInfo device_info(const Driver& d, int index) {
  int device = 0;
  char name[256] = {};
  size_t bytes = 0;
  DeviceInfo info;
  check(d.cuDeviceGet(&device, index), "cuDeviceGet");
  check(d.cuDeviceGetName(name, sizeof name - 1, device), "cuDeviceGetName");
  check(d.cuDeviceTotalMem_v2(&bytes, device), "cuDeviceTotalMem");
  check(d.cuDeviceGetAttribute(&info.major, kAttributeMajor, device), "cuDeviceGetAttribute");
  check(d.cuDeviceGetAttribute(&info.minor, kAttributeMinor, device), "cuDeviceGetAttribute");
  check(d.cuDeviceGetAttribute(&info.multiprocessors, kAttributeMultiprocessors, device), "cuDeviceGetAttribute");
  info.name = name;
  info.memory_bytes = bytes;
  return info;
}

}  // namespace

Info info() {
  const Driver& d = driver();
  Info result{has_kernels(), version_of_images(), d.library.path(), d.version, {}, d.reason};
  try {
    for (int i = 0; i < d.device_count; i++) result.devices.push_back(device_info(d, i));
  } catch (const CudaError& error) {
    result.devices.clear();
    result.reason = error.what();
  }
  if (!result.is_compiled) {
    result.devices.clear();
    result.reason =
        "this build has no CUDA kernels; build it with RINGWISE_CUDA=ON, and with nvcc installed or CUDACXX set";
  }
  return result;
}

}  // namespace ringwise::tensor::cuda
