// Defines the CUDA C++ extensions that our kernels use for a C++ compiler, so that the same sources run on the CPU in
// tests. Every thread of a block is a function call, or a fiber if threads wait for each other (blocks.h).
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace ringwise::software_gpu {

struct Dimensions {
  unsigned x = 1, y = 1, z = 1;
};

/// Waits for all threads of the block.
void barrier();
/// Waits for all threads of the warp, and returns their values in the order of the lanes, kSharedBytes apart. They
/// remain valid until the thread waits again.
const char* share(const void* value, size_t bytes);
constexpr size_t kSharedBytes = 48;  // `bytes` at most

/// Copies `bytes` to the shared memory of the block, and fills the rest of 16 bytes with zeros. Runs at the calling
/// thread's await_copies(), so that a missing wait shows.
void copy_later(void* to, const void* from, size_t bytes);
void await_copies();

}  // namespace ringwise::software_gpu

extern thread_local ringwise::software_gpu::Dimensions threadIdx, blockIdx, blockDim, gridDim;

#define __device__
#define __shared__ static thread_local
#define __syncthreads() ringwise::software_gpu::barrier()

// The inverse of the error function, by Newton's method from an estimate by S. Winitzki.
template <class T>
T erfinv(T argument) {
  const double x = argument, size = std::fabs(x);
  if (!(size < 1)) return static_cast<T>(size == 1 ? x * HUGE_VAL : std::nan(""));
  const double log = std::log1p(-x * x), middle = 4.3307 + log / 2;
  double y = std::sqrt(-log / 0.147 / (std::sqrt(middle * middle - log / 0.147) + middle));
  for (int step = 0; step < 8; step++) {
    const double error = size < 0.5 ? std::erf(y) - size : 1 - size - std::erfc(y);
    y -= error * 0.88622692545275801 * std::exp(y * y);
  }
  return static_cast<T>(std::copysign(y, x));
}

template <class T>
T __shfl_sync(unsigned, T value, int lane) {
  using namespace ringwise::software_gpu;
  const char* const values = share(&value, sizeof value);
  std::memcpy(&value, values + static_cast<size_t>(lane % 32) * kSharedBytes, sizeof value);
  return value;
}
template <class T>
T __shfl_xor_sync(unsigned all, T value, int lane_mask) {
  return __shfl_sync(all, value, static_cast<int>(threadIdx.x % 32) ^ lane_mask);
}

// Defines a kernel, and the functions by whose names the driver finds it: one calls the kernel, the others return the
// size of its arguments and whether its threads wait for each other.
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
#define RINGWISE_SIZED_KERNEL(threads, blocks, name, Arguments) RINGWISE_BLOCK_KERNEL(name, Arguments)
