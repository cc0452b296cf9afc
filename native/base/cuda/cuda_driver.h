// Loads the CUDA driver (libcuda.so.1) on first use. The declarations are our own, so that building and running need no
// CUDA headers or libraries; test/cuda/cuda_driver_abi_test.cc compares them with cuda.h where that exists. Handles are
// pointers to incomplete types, enumerations are int.
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>

#include "base/shared_library.h"

namespace ringwise::cuda {

using DevicePointer = unsigned long long;
using Context = struct ContextTag*;
using Stream = struct StreamTag*;
using Event = struct EventTag*;
using Graph = struct GraphTag*;
using GraphExec = struct GraphExecTag*;
using Library = struct LibraryTag*;
using Kernel = struct KernelTag*;
using Function = struct FunctionTag*;   // a kernel in a context
using Allocation = unsigned long long;  // device memory, which has no address until it is mapped
using StreamCallback = void (*)(Stream, int, void*);

struct MemoryLocation {
  int type;
  int id;
};
/// The properties of an allocation (CUmemAllocationProp).
struct AllocationProperties {
  int type;
  int handle_types;  // bit set of the handle types by which other processes can get it
  MemoryLocation location;
  void* windows_only;
  struct {
    unsigned char compression;
    unsigned char is_for_rdma;
    unsigned short usage;
    unsigned char reserved[4];
  } flags;
};
struct MemoryAccess {
  MemoryLocation location;
  int flags;
};

// Name and arguments of the functions. All return CUresult. cuda.h defines those with a version suffix under the name
// without it.
// clang-format off
#define RINGWISE_DRIVER_FUNCTIONS(X)                                                                          \
  X(cuInit, (unsigned))                                                                                       \
  X(cuDriverGetVersion, (int*))                                                                               \
  X(cuGetErrorName, (int, const char**))                                                                      \
  X(cuGetErrorString, (int, const char**))                                                                    \
  X(cuDeviceGetCount, (int*))                                                                                 \
  X(cuDeviceGet, (int*, int))                                                                                 \
  X(cuDeviceGetName, (char*, int, int))                                                                       \
  X(cuDeviceTotalMem_v2, (size_t*, int))                                                                      \
  X(cuDeviceGetAttribute, (int*, int, int))                                                                   \
  X(cuDevicePrimaryCtxRetain, (Context*, int))                                                                \
  X(cuCtxGetCurrent, (Context*))                                                                              \
  X(cuCtxSetCurrent, (Context))                                                                               \
  X(cuMemGetInfo_v2, (size_t*, size_t*))                                                                      \
  X(cuMemAlloc_v2, (DevicePointer*, size_t))                                                                  \
  X(cuMemFree_v2, (DevicePointer))                                                                            \
  X(cuMemGetAllocationGranularity, (size_t*, const AllocationProperties*, int))                               \
  X(cuMemCreate, (Allocation*, size_t, const AllocationProperties*, unsigned long long))                      \
  X(cuMemRelease, (Allocation))                                                                               \
  X(cuMemAddressReserve, (DevicePointer*, size_t, size_t, DevicePointer, unsigned long long))                 \
  X(cuMemAddressFree, (DevicePointer, size_t))                                                                \
  X(cuMemMap, (DevicePointer, size_t, size_t, Allocation, unsigned long long))                                \
  X(cuMemUnmap, (DevicePointer, size_t))                                                                      \
  X(cuMemSetAccess, (DevicePointer, size_t, const MemoryAccess*, size_t))                                     \
  X(cuMemHostAlloc, (void**, size_t, unsigned))                                                               \
  X(cuMemFreeHost, (void*))                                                                                   \
  X(cuMemHostRegister_v2, (void*, size_t, unsigned))                                                          \
  X(cuMemHostUnregister, (void*))                                                                             \
  X(cuMemcpyHtoDAsync_v2, (DevicePointer, const void*, size_t, Stream))                                       \
  X(cuMemcpyDtoHAsync_v2, (void*, DevicePointer, size_t, Stream))                                             \
  X(cuMemcpyDtoDAsync_v2, (DevicePointer, DevicePointer, size_t, Stream))                                     \
  X(cuStreamCreate, (Stream*, unsigned))                                                                      \
  X(cuStreamDestroy_v2, (Stream))                                                                             \
  X(cuStreamSynchronize, (Stream))                                                                            \
  X(cuStreamWaitEvent, (Stream, Event, unsigned))                                                             \
  X(cuEventCreate, (Event*, unsigned))                                                                        \
  X(cuEventRecord, (Event, Stream))                                                                           \
  X(cuEventSynchronize, (Event))                                                                              \
  X(cuEventQuery, (Event))                                                                                    \
  X(cuEventElapsedTime, (float*, Event, Event))                                                               \
  X(cuEventDestroy_v2, (Event))                                                                               \
  X(cuStreamBeginCapture_v2, (Stream, int))                                                                   \
  X(cuStreamEndCapture, (Stream, Graph*))                                                                     \
  X(cuGraphInstantiateWithFlags, (GraphExec*, Graph, unsigned long long))                                     \
  X(cuGraphDestroy, (Graph))                                                                                  \
  X(cuGraphLaunch, (GraphExec, Stream))                                                                       \
  X(cuGraphExecDestroy, (GraphExec))                                                                          \
  X(cuStreamAddCallback, (Stream, StreamCallback, void*, unsigned))                                           \
  X(cuLibraryLoadData, (Library*, const void*, int*, void**, unsigned, int*, void**, unsigned))               \
  X(cuLibraryGetKernel, (Kernel*, Library, const char*))                                                      \
  X(cuKernelGetFunction, (Function*, Kernel))                                                                 \
  X(cuLaunchKernel, (Kernel, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Stream,    \
                     void**, void**))
// clang-format on

// Constants of cuda.h.
constexpr int kSuccess = 0, kOutOfMemory = 2, kNoDevice = 100, kInvalidImage = 200, kNoBinaryForGpu = 209,
              kInvalidPtx = 218, kUnsupportedPtx = 222, kNotReady = 600, kNotPermitted = 800, kNotSupported = 801;
constexpr int kCaptureRelaxed = 2;  // allows allocations during the capture
constexpr int kAttributeMajor = 75, kAttributeMinor = 76, kAttributeMultiprocessors = 16;
constexpr int kAttributeVirtualMemory = 102, kAttributeFileDescriptors = 103, kAttributeRdmaWithVirtualMemory = 110,
              kAttributeFabricHandles = 128;
constexpr int kPinnedAllocation = 1, kLocationDevice = 1, kGranularityRecommended = 1, kAccessReadWrite = 3;
constexpr int kFileDescriptorHandle = 1, kFabricHandle = 8;
constexpr unsigned kStreamNonBlocking = 1, kEventDisableTiming = 2;
constexpr unsigned kHostPortable = 1, kHostMapped = 2;
// Keys of cuLaunchKernel's `extra` list, which passes all parameters in one block of memory.
inline void* const kLaunchPointer = reinterpret_cast<void*>(1);
inline void* const kLaunchSize = reinterpret_cast<void*>(2);
inline void* const kLaunchEnd = nullptr;

struct Driver {
#define RINGWISE_DECLARE(name, arguments) int(*name) arguments = nullptr;
  RINGWISE_DRIVER_FUNCTIONS(RINGWISE_DECLARE)
#undef RINGWISE_DECLARE
  int (*cuFuncLoad)(Function) = nullptr;  // since CUDA 12.4; null in older drivers

  SharedLibrary library;
  int version = 0;  // latest CUDA version that the driver supports; 13000 is 13.0
  int device_count = 0;
  std::string reason;  // why there are no devices; empty if there are some
};

/// Returns the driver, and loads and initialises it at the first call, which sets the environment variable
/// CUDA_DEVICE_MAX_CONNECTIONS if it is not set. Any thread; never throws.
const Driver& driver();

/// An error that the driver has returned; `status` is its CUresult.
class CudaError : public std::runtime_error {
 public:
  CudaError(int status, const std::string& message) : std::runtime_error(message), status(status) {}
  const int status;
};

/// Throws a CudaError "<what>: <the driver's text>" unless `status` is success.
void check(int status, const char* what);

}  // namespace ringwise::cuda
