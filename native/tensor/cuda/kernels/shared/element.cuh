// Reads and writes elements of any dtype as values of the three computing types (see tensor/kernels.h), one or four at
// a time.
//
// A kernel is written as RINGWISE_KERNEL(name, Arguments) { … }; as RINGWISE_BLOCK_KERNEL if its threads wait for each
// other; as RINGWISE_TILE_KERNEL if its registers must be limited so that a multiprocessor has room for two blocks; as
// RINGWISE_SIZED_KERNEL(threads, blocks, name, Arguments) for other numbers of threads and blocks. All have one
// parameter, `arguments`, and the symbol `name`. Without nvcc these macros come from test/software_gpu/language.h,
// together with the CUDA keywords that kernels use.
#pragma once

#include <math.h>
#include <stdint.h>
#include <string.h>

#include <bit>
#include <limits>
#include <type_traits>

#include "base/dtype.h"
#include "base/half.h"
#include "tensor/cuda/launch/arguments.h"

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#define RINGWISE_KERNEL(name, Arguments) \
  extern "C" __global__ void __launch_bounds__(256) name(const __grid_constant__ Arguments arguments)
#define RINGWISE_BLOCK_KERNEL RINGWISE_KERNEL
#define RINGWISE_TILE_KERNEL(name, Arguments) RINGWISE_SIZED_KERNEL(256, 2, name, Arguments)
#define RINGWISE_SIZED_KERNEL(threads, blocks, name, Arguments) \
  extern "C" __global__ void __launch_bounds__(threads, blocks) name(const __grid_constant__ Arguments arguments)
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

/// Converts towards zero. NaN and values that do not fit become the least value, as on the CPU.
template <class To, class From>
__device__ inline To truncated(From value) {
  const From limit = -static_cast<From>(std::numeric_limits<To>::min());
  return value >= -limit && value < limit ? static_cast<To>(value) : std::numeric_limits<To>::min();
}

template <class To, class From>
__device__ inline To read_as(From value) {
  if constexpr (std::is_same_v<From, Half> || std::is_same_v<From, BFloat>)
    return read_as<To>(float_of(value));
  else if constexpr (std::is_same_v<From, Bool>)
    return static_cast<To>(value.value);
  else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>)
    return truncated<To>(value);
  else
    return static_cast<To>(value);
}

template <class To, class From>
__device__ inline To write_as(From value) {
  if constexpr (std::is_same_v<To, Half>)
    return half_of(static_cast<float>(value));
  else if constexpr (std::is_same_v<To, BFloat>)
    return bfloat_of(static_cast<float>(value));
  else if constexpr (std::is_same_v<To, Bool>)
    return Bool{static_cast<uint8_t>(value != 0)};
  else if constexpr (std::is_floating_point_v<From> && std::is_same_v<To, uint8_t>)
    return static_cast<uint8_t>(truncated<int64_t>(value));
  else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>)
    return truncated<To>(value);
  else
    return static_cast<To>(value);
}

/// Calls use(element of this dtype). All threads take the same branch.
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

/// The type in which elements are computed.
template <class E>
using Computing =
    std::conditional_t<std::is_same_v<E, double>, double,
                       std::conditional_t<std::is_integral_v<E> || std::is_same_v<E, Bool>, int64_t, float>>;

/// Calls use(element of this dtype), for the dtypes that are computed in C: float, double or int64_t.
template <class C, class Use>
__device__ inline void with_type_of(int dtype, Use use) {
  const auto type = static_cast<DType>(dtype);
  if constexpr (std::is_same_v<C, double>) {
    use(double{});
  } else if constexpr (std::is_same_v<C, float>) {
    if (type == DType::Float32) return use(float{});
    if (type == DType::Float16) return use(Half{});
    use(BFloat{});
  } else {
    if (type == DType::Int64) return use(int64_t{});
    if (type == DType::Int32) return use(int32_t{});
    if (type == DType::UInt8) return use(uint8_t{});
    use(Bool{});
  }
}

/// Returns the element `offset` bytes behind `data`.
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

/// N elements that are loaded by one instruction.
template <class E, int N>
struct Elements {
  E at[N];
};
/// Loads N elements. `from` must be aligned for all N together.
template <class E, int N>
__device__ inline Elements<E, N> load_elements(const void* from) {
  if constexpr (N == 1) {
    return {*static_cast<const E*>(from)};
  } else {
    // nvcc loads 16 bytes at once only as a struct of 32-bit words. It loads eight members of 16 bits in two halves.
    struct alignas(N * sizeof(E)) Words {
      uint32_t at[N * sizeof(E) / 4];
    };
    return std::bit_cast<Elements<E, N>>(*static_cast<const Words*>(from));
  }
}
/// Stores N elements. `to` must be aligned for all N together.
template <class E, int N>
__device__ inline void store_elements(void* to, const Elements<E, N>& elements) {
  struct alignas(N * sizeof(E)) Words {
    uint32_t at[N * sizeof(E) / 4];
  };
  *static_cast<Words*>(to) = std::bit_cast<Words>(elements);
}

/// Load and store n ≤ N elements; loaded elements beyond them are 0. `use_packs` tells that n is N and that memory is
/// aligned for all of them together.
template <int N, class E>
__device__ inline Elements<E, N> load_up_to(const E* from, int n, bool use_packs) {
  if (use_packs) return load_elements<E, N>(from);
  Elements<E, N> elements{};
  for (int k = 0; k < N; k++) {
    if (k < n) elements.at[k] = from[k];
  }
  return elements;
}
template <int N, class E>
__device__ inline void store_up_to(E* to, const Elements<E, N>& elements, int n, bool use_packs) {
  if (use_packs) return store_elements(to, elements);
  for (int k = 0; k < N; k++) {
    if (k < n) to[k] = elements.at[k];
  }
}

/// Returns the bits of an element of any dtype, as they are in memory.
__device__ inline uint64_t load_bits(int bytes, const void* data, int64_t offset) {
  const char* from = static_cast<const char*>(data) + offset;
  switch (bytes) {
    case 1: return *reinterpret_cast<const uint8_t*>(from);
    case 2: return *reinterpret_cast<const uint16_t*>(from);
    case 4: return *reinterpret_cast<const uint32_t*>(from);
    default: return *reinterpret_cast<const uint64_t*>(from);
  }
}
/// Returns an element, given its bits, as a value of type T.
template <class T>
__device__ inline T value_of_bits(int dtype, uint64_t bits) {
  T result{};
  with_type(dtype, [&](auto type) {
    using E = decltype(type);
    E element;
    memcpy(&element, &bits, sizeof element);  // little-endian: the low bytes
    result = read_as<T>(element);
  });
  return result;
}

/// Four elements that are moved by one instruction, or by two if an element has 8 bytes.
template <class E>
struct alignas(sizeof(E) >= 4 ? 16 : 4 * sizeof(E)) Pack {
  E at[4];
};

/// Read and write n ≤ 4 elements. `use_packs` tells that memory is aligned for packs.
template <class T, class E>
__device__ inline void read_four(T* values, const E* from, int n, bool use_packs) {
  if (use_packs && n == 4) {
    const Pack<E> pack = *reinterpret_cast<const Pack<E>*>(from);
    for (int k = 0; k < 4; k++) values[k] = read_as<T>(pack.at[k]);
  } else {
    for (int k = 0; k < 4; k++) values[k] = k < n ? read_as<T>(from[k]) : T{};
  }
}
template <class E, class T>
__device__ inline void write_four(E* to, const T* values, int n, bool use_packs) {
  if (use_packs && n == 4) {
    Pack<E> pack;
    for (int k = 0; k < 4; k++) pack.at[k] = write_as<E>(values[k]);
    *reinterpret_cast<Pack<E>*>(to) = pack;
  } else {
    for (int k = 0; k < 4; k++) {
      if (k < n) to[k] = write_as<E>(values[k]);
    }
  }
}

/// Read and write elements [begin, begin + n) of dense memory of any dtype.
template <class T>
__device__ inline void load_four(T* values, int dtype, const void* data, int64_t begin, int n, bool use_packs) {
  with_type(dtype,
            [&](auto type) { read_four(values, static_cast<const decltype(type)*>(data) + begin, n, use_packs); });
}
template <class T>
__device__ inline void store_four(const T* values, int dtype, void* data, int64_t begin, int n, bool use_packs) {
  with_type(dtype, [&](auto type) { write_four(static_cast<decltype(type)*>(data) + begin, values, n, use_packs); });
}

/// Calls body(i) for the share of [0, count) that this thread has: all threads of the grid take turns.
template <class Body>
__device__ inline void for_each_of_grid(int64_t count, Body body) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) body(i);
}

/// Returns n / by.value, for n below 2^31.
__device__ inline uint32_t divided(uint32_t n, const Divisor& by) {
  return (static_cast<uint32_t>(static_cast<uint64_t>(n) * by.magic >> 32) + n) >> by.shift;
}

/// Splits a linear index below 2^31, last dimension first, and calls body(dimension, index along it). No division.
template <class Body>
__device__ inline void for_each_dimension(uint32_t linear, int rank, const Divisor* shape, Body body) {
  for (int d = rank - 1; d > 0; d--) {
    const uint32_t quotient = divided(linear, shape[d]);
    body(d, static_cast<int64_t>(linear - quotient * shape[d].value));
    linear = quotient;
  }
  body(0, static_cast<int64_t>(linear));
}

/// Splits a linear index, last dimension first, and calls body(dimension, index along it). Indices below 2^31 are
/// divided in 32 bits, which is several times as fast.
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

constexpr int kWarp = 32;

/// Returns the combination of the values of all threads of a warp, with the same bits to each. All must call it.
template <class T, class Combine>
__device__ inline T over_warp(T value, Combine combine) {
#pragma unroll
  for (int mask = kWarp / 2; mask > 0; mask /= 2) value = combine(value, __shfl_xor_sync(0xffffffffu, value, mask));
  return value;
}

/// Returns the combination of the values of all threads of a block, which consists of whole warps. `shared` has room
/// for one value of each warp, and may be used again afterwards.
template <class T, class Combine>
__device__ inline T over_block(T value, T* shared, Combine combine) {
  const int thread = static_cast<int>(threadIdx.x), warps = static_cast<int>(blockDim.x) / kWarp;
  value = over_warp(value, combine);
  if (warps == 1) return value;
  if (thread % kWarp == 0) shared[thread / kWarp] = value;
  __syncthreads();
  T total = shared[0];
  for (int warp = 1; warp < warps; warp++) total = combine(total, shared[warp]);
  __syncthreads();
  return total;
}

}  // namespace ringwise::tensor::cuda
