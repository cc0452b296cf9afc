// The declarations of tensor/cuda/driver.h against the vendor's, where cuda.h is installed. All checks are made by the
// compiler. Pointers may point to anything; everything else must agree in size and kind.
#include <cstdio>
#include <type_traits>

#include "tensor/cuda/driver.h"

#if __has_include(<cuda.h>)
#include <cuda.h>

#ifdef cuEventElapsedTime  // newer headers know the first version of it, which old drivers have too, by another name
#undef cuEventElapsedTime
extern "C" decltype(cuEventElapsedTime_v2) cuEventElapsedTime;
#endif

namespace {

template <class A, class B>
constexpr bool is_same_argument() {
  if constexpr (std::is_void_v<A> || std::is_void_v<B>) return std::is_void_v<A> == std::is_void_v<B>;
  else if constexpr (std::is_pointer_v<A> || std::is_pointer_v<B>) return std::is_pointer_v<A> == std::is_pointer_v<B>;
  else
    return sizeof(A) == sizeof(B) && alignof(A) == alignof(B) && std::is_class_v<A> == std::is_class_v<B> &&
           std::is_floating_point_v<A> == std::is_floating_point_v<B>;
}

template <class A, class B>
struct Same : std::false_type {};
template <class A, class... As, class B, class... Bs>
struct Same<A (*)(As...), B (*)(Bs...)> {
  static constexpr bool all() {
    if constexpr (sizeof...(As) != sizeof...(Bs)) return false;
    else return is_same_argument<A, B>() && (is_same_argument<As, Bs>() && ...);
  }
  static constexpr bool value = all();
};

using ringwise::tensor::cuda::Driver;
#define COMPARE(name, arguments) \
  static_assert(Same<decltype(Driver::name), decltype(&::name)>::value, #name " is not declared as in cuda.h");
RINGWISE_DRIVER_FUNCTIONS(COMPARE)

namespace cuda = ringwise::tensor::cuda;
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
