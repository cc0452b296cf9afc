// The declarations of base/cuda_driver.h against the vendor's, where cuda.h is installed. All checks are made by the
// compiler.
#include <cstdio>

#include "abi.h"
#include "base/cuda_driver.h"

#if __has_include(<cuda.h>)
#include <cuda.h>

#ifdef cuEventElapsedTime  // newer headers know the first version of it, which old drivers have too, by another name
#undef cuEventElapsedTime
extern "C" decltype(cuEventElapsedTime_v2) cuEventElapsedTime;
#endif

namespace {

using ringwise::cuda::Driver;
#define COMPARE(name, arguments) \
  static_assert(Same<decltype(Driver::name), decltype(&::name)>::value, #name " is not declared as in cuda.h");
RINGWISE_DRIVER_FUNCTIONS(COMPARE)

namespace cuda = ringwise::cuda;
static_assert(sizeof(cuda::DevicePointer) == sizeof(CUdeviceptr));
static_assert(cuda::kSuccess == CUDA_SUCCESS && cuda::kOutOfMemory == CUDA_ERROR_OUT_OF_MEMORY);
static_assert(cuda::kNoDevice == CUDA_ERROR_NO_DEVICE && cuda::kNotReady == CUDA_ERROR_NOT_READY);
static_assert(cuda::kCaptureRelaxed == CU_STREAM_CAPTURE_MODE_RELAXED);
static_assert(cuda::kAttributeMajor == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
static_assert(cuda::kAttributeMinor == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
static_assert(cuda::kAttributeMultiprocessors == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
static_assert(cuda::kStreamNonBlocking == CU_STREAM_NON_BLOCKING && cuda::kEventDisableTiming == CU_EVENT_DISABLE_TIMING);
static_assert(cuda::kHostPortable == CU_MEMHOSTALLOC_PORTABLE && cuda::kHostMapped == CU_MEMHOSTALLOC_DEVICEMAP);
static_assert(CU_LAUNCH_PARAM_BUFFER_POINTER_AS_INT == 1 && CU_LAUNCH_PARAM_BUFFER_SIZE_AS_INT == 2);
// The comparison itself notices what it should.
static_assert(!Same<int (*)(size_t), int (*)(int)>::value && !Same<int (*)(float), int (*)(int)>::value);
static_assert(!Same<int (*)(int), int (*)(int, int)>::value && !Same<int (*)(void*), int (*)(size_t)>::value);

}  // namespace

int main() {
  std::printf("compared with cuda.h of CUDA %d\n", CUDA_VERSION);
  return 0;
}
#else
int main() {
  std::printf("skipped: cuda.h is not installed\n");
  return 0;
}
#endif
