// Defines the CUDA C++ extensions that our kernels use for a C++ compiler, so that the same sources run on the CPU in
// tests. Every thread of a block is a function call, or a fiber if threads wait for each other (blocks.h).
#pragma once

#include <cstddef>
#include <cstdint>

namespace ringwise::software_gpu {

struct Dimensions {
  unsigned x = 1, y = 1, z = 1;
};

/// Waits for all threads of the block.
void barrier();
/// Waits for all threads of the warp, and swaps the value with the thread whose lane differs in these bits.
void exchange(void* value, size_t bytes, unsigned lane_mask);

}  // namespace ringwise::software_gpu

extern thread_local ringwise::software_gpu::Dimensions threadIdx, blockIdx, blockDim, gridDim;

#define __device__
#define __shared__ static thread_local
#define __syncthreads() ringwise::software_gpu::barrier()

template <class T>
T __shfl_xor_sync(unsigned, T value, int lane_mask) {
  static_assert(sizeof(T) <= 8);
  ringwise::software_gpu::exchange(&value, sizeof value, static_cast<unsigned>(lane_mask));
  return value;
}

// The table of kernels by name: how to call a kernel, the size of its arguments, and whether its threads wait.
#define RINGWISE_SOFTWARE_KERNEL(name, Arguments, waits)                                                      \
  static void name##_body(const Arguments& arguments);                                                        \
  extern "C" __attribute__((visibility("default"))) void ringwise_kernel_##name(const void* arguments) {      \
    name##_body(*static_cast<const Arguments*>(arguments));                                                   \
  }                                                                                                           \
  extern "C" __attribute__((visibility("default"))) int ringwise_bytes_##name() { return sizeof(Arguments); } \
  extern "C" __attribute__((visibility("default"))) int ringwise_waits_##name() { return waits; }             \
  static void name##_body(const Arguments& arguments)
#define RINGWISE_KERNEL(name, Arguments) RINGWISE_SOFTWARE_KERNEL(name, Arguments, 0)
#define RINGWISE_BLOCK_KERNEL(name, Arguments) RINGWISE_SOFTWARE_KERNEL(name, Arguments, 1)
#define RINGWISE_TILE_KERNEL RINGWISE_BLOCK_KERNEL
