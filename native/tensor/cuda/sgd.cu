// Memory-bound: 12 bytes per element without a velocity and 20 with one, so each thread moves 16 bytes at a time.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "tensor/cuda/sgd.h"

namespace ringwise::tensor {

namespace {

constexpr int kThreads = 256;

template <bool kHasVelocity>
__device__ void update(float& param, float grad, float* velocity, const SgdOptions& o) {
  float step = grad + o.weight_decay * param;
  if constexpr (kHasVelocity) {
    const float speed = o.first ? step : o.momentum * *velocity + (1.0f - o.dampening) * step;
    *velocity = speed;
    step = o.nesterov ? step + o.momentum * speed : speed;
  }
  param -= o.lr * step;
}

// One thread per four elements; the last threads take what is left over one by one.
template <bool kHasVelocity>
__global__ void sgd_kernel(float* param, const float* grad, float* velocity, SgdOptions o, size_t count) {
  const size_t thread = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x;
  const size_t stride = gridDim.x * static_cast<size_t>(blockDim.x);
  const size_t quads = count / 4;
  for (size_t i = thread; i < quads; i += stride) {
    float4 p = reinterpret_cast<float4*>(param)[i];
    const float4 g = reinterpret_cast<const float4*>(grad)[i];
    float4 v{};
    if constexpr (kHasVelocity) v = reinterpret_cast<float4*>(velocity)[i];
    update<kHasVelocity>(p.x, g.x, &v.x, o);
    update<kHasVelocity>(p.y, g.y, &v.y, o);
    update<kHasVelocity>(p.z, g.z, &v.z, o);
    update<kHasVelocity>(p.w, g.w, &v.w, o);
    reinterpret_cast<float4*>(param)[i] = p;
    if constexpr (kHasVelocity) reinterpret_cast<float4*>(velocity)[i] = v;
  }
  for (size_t i = quads * 4 + thread; i < count; i += stride) {
    update<kHasVelocity>(param[i], grad[i], kHasVelocity ? velocity + i : nullptr, o);
  }
}

// As sgd_kernel, for arrays that do not start at a multiple of 16 bytes (views into a bucket).
template <bool kHasVelocity>
__global__ void sgd_kernel_unaligned(float* param, const float* grad, float* velocity, SgdOptions o, size_t count) {
  const size_t stride = gridDim.x * static_cast<size_t>(blockDim.x);
  for (size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x; i < count; i += stride) {
    update<kHasVelocity>(param[i], grad[i], kHasVelocity ? velocity + i : nullptr, o);
  }
}

bool is_aligned(const void* p) { return reinterpret_cast<uintptr_t>(p) % sizeof(float4) == 0; }

}  // namespace

const char* sgd_cuda(float* param, const float* grad, float* velocity, const SgdOptions& options, size_t count,
                     void* stream) {
  if (count == 0) return nullptr;
  const bool aligned = is_aligned(param) && is_aligned(grad) && is_aligned(velocity);
  const auto kernel = aligned ? (velocity ? sgd_kernel<true> : sgd_kernel<false>)
                              : (velocity ? sgd_kernel_unaligned<true> : sgd_kernel_unaligned<false>);
  const size_t wanted = (count + 4 * kThreads - 1) / (4 * kThreads);
  const unsigned blocks = static_cast<unsigned>(std::min<size_t>(wanted, 65535));
  kernel<<<blocks, kThreads, 0, static_cast<cudaStream_t>(stream)>>>(param, grad, velocity, options, count);
  const cudaError_t status = cudaGetLastError();
  return status == cudaSuccess ? nullptr : cudaGetErrorString(status);
}

}  // namespace ringwise::tensor
