// Compares the declarations of base/cuda/cuda_driver.h with the vendor's if cuda.h is installed. The compiler makes all
// checks.
#include <cstddef>
#include <cstdio>

#include "base/cuda/cuda_driver.h"
#include "test/abi.h"

#if __has_include(<cuda.h>)
#include <cuda.h>

// Newer headers define this name as a macro for its second version. Declare the first, which old drivers have too.
#ifdef cuEventElapsedTime
#undef cuEventElapsedTime
extern "C" decltype(cuEventElapsedTime_v2) cuEventElapsedTime;
#endif

namespace {

using ringwise::cuda::Driver;
#define COMPARE(name, arguments) \
  static_assert(Same<decltype(Driver::name), decltype(&::name)>::value, #name " is not declared as in cuda.h");
RINGWISE_DRIVER_FUNCTIONS(COMPARE)

#if CUDA_VERSION >= 12040  // older headers lack it
static_assert(Same<decltype(Driver::cuFuncLoad), decltype(&::cuFuncLoad)>::value);
#endif

namespace cuda = ringwise::cuda;
static_assert(sizeof(cuda::DevicePointer) == sizeof(CUdeviceptr));
static_assert(cuda::kSuccess == CUDA_SUCCESS && cuda::kOutOfMemory == CUDA_ERROR_OUT_OF_MEMORY);
static_assert(cuda::kNoDevice == CUDA_ERROR_NO_DEVICE && cuda::kNotReady == CUDA_ERROR_NOT_READY);
static_assert(cuda::kCaptureRelaxed == CU_STREAM_CAPTURE_MODE_RELAXED);
static_assert(cuda::kAttributeMajor == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
static_assert(cuda::kAttributeMinor == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
static_assert(cuda::kAttributeMultiprocessors == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
static_assert(cuda::kStreamNonBlocking == CU_STREAM_NON_BLOCKING &&
              cuda::kEventDisableTiming == CU_EVENT_DISABLE_TIMING);
static_assert(cuda::kHostPortable == CU_MEMHOSTALLOC_PORTABLE && cuda::kHostMapped == CU_MEMHOSTALLOC_DEVICEMAP);
static_assert(cuda::kNotPermitted == CUDA_ERROR_NOT_PERMITTED && cuda::kNotSupported == CUDA_ERROR_NOT_SUPPORTED);
static_assert(sizeof(cuda::Allocation) == sizeof(CUmemGenericAllocationHandle));
static_assert(cuda::kAttributeVirtualMemory == CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
static_assert(cuda::kAttributeFileDescriptors == CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED);
static_assert(cuda::kAttributeRdmaWithVirtualMemory == CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED);
static_assert(cuda::kPinnedAllocation == CU_MEM_ALLOCATION_TYPE_PINNED &&
              cuda::kLocationDevice == CU_MEM_LOCATION_TYPE_DEVICE);
static_assert(cuda::kGranularityRecommended == CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
static_assert(cuda::kAccessReadWrite == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
static_assert(cuda::kFileDescriptorHandle == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
#if CUDA_VERSION >= 12030  // older headers lack fabric handles
static_assert(cuda::kAttributeFabricHandles == CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED);
static_assert(cuda::kFabricHandle == CU_MEM_HANDLE_TYPE_FABRIC);
#endif
#define HAS_MEMBER_OF(Own, Vendors, member, vendors)                         \
  static_assert(offsetof(cuda::Own, member) == offsetof(Vendors, vendors) && \
                    sizeof(cuda::Own::member) == sizeof(Vendors::vendors),   \
                #Own "::" #member " is not as in cuda.h")
static_assert(sizeof(cuda::AllocationProperties) == sizeof(CUmemAllocationProp) &&
              sizeof(cuda::MemoryAccess) == sizeof(CUmemAccessDesc));
HAS_MEMBER_OF(AllocationProperties, CUmemAllocationProp, type, type);
HAS_MEMBER_OF(AllocationProperties, CUmemAllocationProp, handle_types, requestedHandleTypes);
HAS_MEMBER_OF(AllocationProperties, CUmemAllocationProp, location, location);
HAS_MEMBER_OF(AllocationProperties, CUmemAllocationProp, windows_only, win32HandleMetaData);
HAS_MEMBER_OF(AllocationProperties, CUmemAllocationProp, flags, allocFlags);
HAS_MEMBER_OF(AllocationProperties, CUmemAllocationProp, flags.is_for_rdma, allocFlags.gpuDirectRDMACapable);
HAS_MEMBER_OF(MemoryLocation, CUmemLocation, type, type);
HAS_MEMBER_OF(MemoryLocation, CUmemLocation, id, id);
HAS_MEMBER_OF(MemoryAccess, CUmemAccessDesc, location, location);
HAS_MEMBER_OF(MemoryAccess, CUmemAccessDesc, flags, flags);
static_assert(CU_LAUNCH_PARAM_BUFFER_POINTER_AS_INT == 1 && CU_LAUNCH_PARAM_BUFFER_SIZE_AS_INT == 2);
// Check that the comparison notices differences.
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
