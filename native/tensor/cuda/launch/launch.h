// Launches kernels whose threads work independently: as many blocks as the work needs, up to the number that keeps the
// device busy; beyond that each thread takes several elements. Plans launches of kernels whose threads share outputs,
// and allocates memory for the launches of one call.
#pragma once

#include <algorithm>
#include <bit>
#include <initializer_list>

#include "base/dtype.h"
#include "tensor/cuda/device/device.h"
#include "tensor/cuda/launch/arguments.h"

namespace ringwise::tensor::cuda {

/// Returns the computing dtype of a conversion between two dtypes.
inline DType converting_type(DType to, DType from) {
  const auto is_integer = [](DType dtype) { return dtype >= DType::Int8; };
  if (is_integer(to) && is_integer(from)) return DType::Int64;
  return to == DType::Float64 || from == DType::Float64 ? DType::Float64 : DType::Float32;
}

/// Returns the number of threads of a block that shares `work`: a power of two from 32 to kThreads.
inline int block_threads(size_t work) {
  return static_cast<int>(std::clamp<size_t>(std::bit_ceil(std::min<size_t>(work, kThreads)), 32, kThreads));
}

/// Memory of the current device for kernels that are launched during the lifetime of this object. Work of the memory's
/// next owner runs later on the same stream. A call that finds no memory is made again when there is room, so a kernel
/// that adds to an output is launched after all allocations.
class Scratch {
 public:
  explicit Scratch(size_t bytes) : data_(current_device().allocate(bytes)) {}
  ~Scratch() { current_device().free(data_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  void* data() const { return data_; }

 private:
  void* data_;
};

/// Returns the blocks of a launch over `count` elements.
inline Grid grid_for(size_t count) {
  const size_t blocks = (count + kThreads - 1) / kThreads,
               most = static_cast<size_t>(current_device().multiprocessors()) * 32;
  return {static_cast<unsigned>(std::min(blocks, most))};
}

/// Launches a kernel whose threads share `count` elements; nothing if there are none.
template <class Arguments>
void launch_over(size_t count, KernelId kernel, const Arguments& arguments) {
  if (count > 0) current_device().launch(kernel, grid_for(count), kThreads, arguments);
}

/// Work of a kernel whose threads share outputs (Team of team.cuh): the outputs, and the units that are reduced to
/// each. Both count packs or elements.
struct TeamWork {
  int64_t outputs, units;
  bool is_column, use_packs;
  int in_flight;  // loads that a thread issues at once

  /// Returns the number of outputs that a block works on. Each thread should have as many units as it loads at once.
  /// Threads that read neighbouring memory should read 128 bytes, and few outputs should have many blocks.
  int lanes() const {
    const int neighbours = use_packs ? 8 : 32, most_ways = power_of_two(units), most_lanes = power_of_two(outputs);
    const int64_t few = 2 * static_cast<int64_t>(current_device().multiprocessors());
    const int wanted = power_of_two((units + in_flight - 1) / in_flight);
    const int ways = is_column ? std::min(wanted, 8) : std::max(wanted, std::min(neighbours, most_ways));
    int lanes = std::min(kThreads / ways, most_lanes);
    const int least = is_column ? std::min(neighbours, most_lanes) : 1;
    while (lanes > least && kThreads / lanes < most_ways && outputs < few * lanes) lanes /= 2;
    return lanes;
  }

  int64_t blocks() const { return (outputs + lanes() - 1) / lanes(); }

  /// Returns the number of chunks of units that gives each multiprocessor eight blocks, and each thread two batches of
  /// loads at least.
  int64_t chunks() const {
    constexpr int64_t kMostChunks = 1024;
    const int64_t wanted =
        8 * static_cast<int64_t>(current_device().multiprocessors()) / std::max<int64_t>(blocks(), 1);
    const int64_t possible = units / (kThreads / lanes() * in_flight * 2);
    return std::clamp<int64_t>(std::min(wanted, possible), 1, kMostChunks);
  }

 private:
  static int power_of_two(int64_t count) {
    return static_cast<int>(std::bit_ceil(static_cast<uint64_t>(std::clamp<int64_t>(count, 1, kThreads))));
  }
};

/// Returns ⌊rest · 2⁶⁴ ÷ divisor⌋ for rest < divisor < 2⁶³. A division of __int128 would need the compiler's library.
/// That of zig, the compiler of releases, is a single object: with it the addon would get memcpy(), exp() and the like
/// of that object, which are slower than the C library's and round differently.
inline uint64_t wide_quotient(uint64_t rest, uint64_t divisor) {
  uint64_t quotient = 0;
  const int free_bits = std::countl_zero(divisor);  // by so many bits `rest` can be moved without an overflow
  for (int left = 64; left > 0;) {
    const int step = std::min(left, free_bits);
    rest <<= step;
    quotient = (quotient << step) + rest / divisor;
    rest %= divisor;
    left -= step;
  }
  return quotient;
}

/// Returns a dimension with its size, stride in bytes, and the numbers that divide by the size.
inline ReducedDimension reduced_dimension(int64_t size, int64_t stride) {
  if (size == 0) return {0, 0, stride, 0};  // never divided by
  const auto divisor = static_cast<uint64_t>(size);
  const int shift = std::bit_width(divisor - 1);
  const uint64_t rest = (uint64_t{1} << shift) - divisor;
  return {divisor, wide_quotient(rest, divisor) + 1, stride, shift};
}

/// Returns one of four kernels, by the stored dtype.
inline KernelId by_stored(DType dtype, KernelId of_float, KernelId of_double, KernelId of_half, KernelId of_bfloat) {
  switch (dtype) {
    case DType::Float64: return of_double;
    case DType::Float16: return of_half;
    case DType::BFloat16: return of_bfloat;
    default: return of_float;
  }
}

/// Lists the four kernels of a name for by_stored.
#define RINGWISE_STORED(name) \
  KernelId::name##_float, KernelId::name##_double, KernelId::name##_half, KernelId::name##_bfloat

/// Returns whether 16 bytes can be moved at once at each of these pointers. Null pointers do not count.
inline bool are_aligned(std::initializer_list<const void*> pointers) {
  return std::all_of(pointers.begin(), pointers.end(),
                     [](const void* pointer) { return reinterpret_cast<uintptr_t>(pointer) % 16 == 0; });
}

/// Returns whether four elements can be moved at once at each of these pointers. Null pointers do not count.
inline bool takes_packs(DType dtype, std::initializer_list<const void*> pointers) {
  const size_t pack = std::min<size_t>(16, 4 * byte_size(dtype));
  return std::all_of(pointers.begin(), pointers.end(),
                     [&](const void* pointer) { return reinterpret_cast<uintptr_t>(pointer) % pack == 0; });
}

}  // namespace ringwise::tensor::cuda
