// Elements of any dtype as values of the three types that compute (kernels.h of native/tensor says which), one at a
// time or four. Kernels include this and nothing of the host's tensor code.
//
// A kernel is RINGWISE_KERNEL(name, Arguments) { … }, one whose threads wait for each other RINGWISE_BLOCK_KERNEL. Both
// have one parameter, `arguments`, and the symbol `name`. Without nvcc these two come from
// test/software_gpu/language.h, together with the words of CUDA that are used here.
#pragma once

#include <math.h>
#include <stdint.h>

#include <limits>
#include <type_traits>

#include "base/dtype.h"
#include "base/half.h"
#include "tensor/cuda/arguments.h"

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#define RINGWISE_KERNEL(name, Arguments) \
  extern "C" __global__ void __launch_bounds__(256) name(const __grid_constant__ Arguments arguments)
#define RINGWISE_BLOCK_KERNEL RINGWISE_KERNEL
#endif

namespace ringwise::tensor::cuda {

struct Bool {
  uint8_t value;
};

#ifdef __CUDACC__
__device__ inline float float_of(Half x) { return __half2float(__ushort_as_half(x.bits)); }
__device__ inline float float_of(BFloat x) { return __uint_as_float(static_cast<uint32_t>(x.bits) << 16); }
__device__ inline Half half_of(float x) { return {__half_as_ushort(__float2half_rn(x))}; }
__device__ inline BFloat bfloat_of(float x) { return {__bfloat16_as_ushort(__float2bfloat16_rn(x))}; }
#else
inline float float_of(Half x) { return to_float(x); }
inline float float_of(BFloat x) { return to_float(x); }
inline Half half_of(float x) { return to_half(x); }
inline BFloat bfloat_of(float x) { return to_bfloat(x); }
#endif

/// Towards zero; what does not fit, and NaN, becomes the least value, as on the CPU.
template <class To, class From>
__device__ inline To truncated(From value) {
  const From limit = -static_cast<From>(std::numeric_limits<To>::min());
  return value >= -limit && value < limit ? static_cast<To>(value) : std::numeric_limits<To>::min();
}

template <class To, class From>
__device__ inline To read_as(From value) {
  if constexpr (std::is_same_v<From, Half> || std::is_same_v<From, BFloat>) return read_as<To>(float_of(value));
  else if constexpr (std::is_same_v<From, Bool>) return static_cast<To>(value.value);
  else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) return truncated<To>(value);
  else return static_cast<To>(value);
}

template <class To, class From>
__device__ inline To write_as(From value) {
  if constexpr (std::is_same_v<To, Half>) return half_of(static_cast<float>(value));
  else if constexpr (std::is_same_v<To, BFloat>) return bfloat_of(static_cast<float>(value));
  else if constexpr (std::is_same_v<To, Bool>) return Bool{static_cast<uint8_t>(value != 0)};
  else if constexpr (std::is_floating_point_v<From> && std::is_same_v<To, uint8_t>)
    return static_cast<uint8_t>(truncated<int64_t>(value));
  else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) return truncated<To>(value);
  else return static_cast<To>(value);
}

/// use(an element of this dtype); the same branch for all threads.
template <class Use>
__device__ inline void with_type(int dtype, Use use) {
  switch (static_cast<DType>(dtype)) {
    case DType::Float32: return use(float{});
    case DType::Float64: return use(double{});
    case DType::Float16: return use(Half{});
    case DType::BFloat16: return use(BFloat{});
    case DType::Int32: return use(int32_t{});
    case DType::Int64: return use(int64_t{});
    case DType::UInt8: return use(uint8_t{});
    case DType::Bool: return use(Bool{});
    default: return;
  }
}

/// The element `offset` bytes behind `data`.
template <class T>
__device__ inline T load(int dtype, const void* data, int64_t offset) {
  T result{};
  with_type(dtype, [&](auto type) {
    result = read_as<T>(*reinterpret_cast<const decltype(type)*>(static_cast<const char*>(data) + offset));
  });
  return result;
}

template <class T>
__device__ inline void store(int dtype, void* data, int64_t offset, T value) {
  with_type(dtype, [&](auto type) {
    using To = decltype(type);
    *reinterpret_cast<To*>(static_cast<char*>(data) + offset) = write_as<To>(value);
  });
}

/// Four elements that are moved by one instruction (two, of 8 bytes each).
template <class E>
struct alignas(sizeof(E) >= 4 ? 16 : 4 * sizeof(E)) Pack {
  E at[4];
};

/// Elements [begin, begin + n) of dense memory, n ≤ 4.
template <class T>
__device__ inline void load_four(T* values, int dtype, const void* data, int64_t begin, int n, bool is_vector) {
  with_type(dtype, [&](auto type) {
    using E = decltype(type);
    const E* from = static_cast<const E*>(data) + begin;
    if (is_vector && n == 4) {
      const Pack<E> pack = *reinterpret_cast<const Pack<E>*>(from);
      for (int k = 0; k < 4; k++) values[k] = read_as<T>(pack.at[k]);
    } else {
      for (int k = 0; k < 4; k++) values[k] = k < n ? read_as<T>(from[k]) : T{};
    }
  });
}

template <class T>
__device__ inline void store_four(const T* values, int dtype, void* data, int64_t begin, int n, bool is_vector) {
  with_type(dtype, [&](auto type) {
    using E = decltype(type);
    E* to = static_cast<E*>(data) + begin;
    if (is_vector && n == 4) {
      Pack<E> pack;
      for (int k = 0; k < 4; k++) pack.at[k] = write_as<E>(values[k]);
      *reinterpret_cast<Pack<E>*>(to) = pack;
    } else {
      for (int k = 0; k < 4; k++) {
        if (k < n) to[k] = write_as<E>(values[k]);
      }
    }
  });
}

/// Calls body(i) for the share of [0, count) that this thread has: all threads of the grid take turns.
template <class Body>
__device__ inline void for_each_of_grid(int64_t count, Body body) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) body(i);
}

/// Takes a linear index apart, last dimension first: body(dimension, index along it). Indices below 2^31 are divided
/// in 32 bits, which is several times as fast.
template <class Body>
__device__ inline void for_each_dimension(int64_t linear, int rank, const int64_t* shape, Body body) {
  if (linear <= INT32_MAX) {
    uint32_t rest = static_cast<uint32_t>(linear);
    for (int d = rank - 1; d >= 0; d--) {
      if (shape[d] > INT32_MAX) {  // the index along it is all that is left
        body(d, static_cast<int64_t>(rest));
        rest = 0;
        continue;
      }
      const uint32_t size = static_cast<uint32_t>(shape[d]), quotient = rest / size;
      body(d, static_cast<int64_t>(rest - quotient * size));
      rest = quotient;
    }
  } else {
    for (int d = rank - 1; d >= 0; d--) {
      const int64_t quotient = linear / shape[d];
      body(d, linear - quotient * shape[d]);
      linear = quotient;
    }
  }
}

/// All threads of the block, whose number is a power of two, get combine(v of all of them). `shared` has room for one
/// value of each thread, and may be used again afterwards.
template <class T, class Combine>
__device__ inline T over_block(T value, T* shared, Combine combine) {
  const int thread = static_cast<int>(threadIdx.x);
  shared[thread] = value;
  __syncthreads();
  for (int half = static_cast<int>(blockDim.x) / 2; half > 0; half /= 2) {
    if (thread < half) shared[thread] = combine(shared[thread], shared[thread + half]);
    __syncthreads();
  }
  const T total = shared[0];
  __syncthreads();
  return total;
}

}  // namespace ringwise::tensor::cuda
