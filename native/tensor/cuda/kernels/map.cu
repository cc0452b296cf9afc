// Elementwise operations, copies and conversions. Memory bandwidth limits the speed, so a thread moves 16 bytes of each
// operand at a time where all have one dtype and dense rows (map_packs), four elements where they are dense throughout
// (map_dense), and starts the loads of two elements together where they have other strides (map_strided).
#include "tensor/cuda/kernels/shared/functions.cuh"

namespace ringwise::tensor::cuda {

template <class T>
__device__ void map_dense(const MapDenseArguments& x) {
  constexpr int kWide = 4;
  const bool use_packs = x.use_packs != 0;
  T values[3][kWide], result[kWide] = {};
  // Operands that are the same for all elements are read once; absent operands are not read.
  for (int i = 0; i < 3; i++) {
    const DenseOperand& operand = x.operand[i + 1];
    T value{};
    if (i + 1 < x.operands && operand.step == 0) {
      value = operand.data ? load<T>(operand.dtype, operand.data, 0) : read_as<T>(operand.number);
    }
    for (int k = 0; k < kWide; k++) values[i][k] = value;
  }
  for_each_of_grid((x.count + kWide - 1) / kWide, [&](int64_t group) {
    const int64_t begin = group * kWide;
    const int n = static_cast<int>(x.count - begin < kWide ? x.count - begin : kWide);
#pragma unroll
    for (int i = 0; i < 3; i++) {
      const DenseOperand& operand = x.operand[i + 1];
      if (i + 1 < x.operands && operand.step != 0)
        load_four(values[i], operand.dtype, operand.data, begin, n, use_packs);
    }
    apply<T, kWide>(x.op, result, values[0], values[1], values[2]);
    store_four(result, x.operand[0].dtype, x.operand[0].data, begin, n, use_packs);
  });
}

/// Computes in float, with operands that all have the dtype of the result or are numbers. This is the common case, and
/// has no branch for a dtype between one load and the next.
template <class E>
__device__ void map_packs(const MapPacksArguments& x) {
  constexpr int kCount = 16 / sizeof(E);
  float values[3][kCount], result[kCount] = {};
#pragma unroll
  for (int i = 0; i < 3; i++) {
    for (int k = 0; k < kCount; k++) values[i][k] = static_cast<float>(x.operand[i + 1].number);
  }
  for_each_of_grid(x.count, [&](int64_t pack) {
    int64_t offset[4] = {};
    for_each_dimension(static_cast<uint32_t>(pack), x.rank, x.shape, [&](int d, int64_t index) {
#pragma unroll
      for (int i = 0; i < 4; i++) {
        if (i < x.operands) offset[i] += index * x.operand[i].strides[d];
      }
    });
    // All loads begin before the first value is used.
    Elements<E, kCount> packs[3];
#pragma unroll
    for (int i = 0; i < 3; i++) {
      const PackOperand& operand = x.operand[i + 1];
      if (i + 1 >= x.operands || !operand.data) continue;
      const char* from = static_cast<const char*>(operand.data) + offset[i + 1];
      if (operand.is_dense)
        packs[i] = load_elements<E, kCount>(from);
      else
        packs[i].at[0] = *reinterpret_cast<const E*>(from);
    }
#pragma unroll
    for (int i = 0; i < 3; i++) {
      const PackOperand& operand = x.operand[i + 1];
      if (i + 1 >= x.operands || !operand.data) continue;
#pragma unroll
      for (int k = 0; k < kCount; k++) values[i][k] = read_as<float>(packs[i].at[operand.is_dense ? k : 0]);
    }
    apply<float, kCount>(x.op, result, values[0], values[1], values[2]);
    Elements<E, kCount> out;
#pragma unroll
    for (int k = 0; k < kCount; k++) out.at[k] = write_as<E>(result[k]);
    store_elements(static_cast<char*>(x.operand[0].data) + offset[0], out);
  });
}

/// Computes two elements at a time, a grid apart, so that the loads of both are under way together.
template <class T>
__device__ void map_strided(const MapStridedArguments& x) {
  constexpr int kAtOnce = 2;
  T values[3][kAtOnce], result[kAtOnce] = {};
#pragma unroll
  for (int i = 0; i < 3; i++) {
    for (int k = 0; k < kAtOnce; k++) values[i][k] = read_as<T>(x.operand[i + 1].number);
  }
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  const int64_t first = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  for (int64_t begin = first; begin < x.count; begin += kAtOnce * step) {
    int64_t offset[kAtOnce][4] = {};
    uint64_t bits[3][kAtOnce] = {};
#pragma unroll
    for (int k = 0; k < kAtOnce; k++) {
      const int64_t at = begin + k * step;
      if (at >= x.count) continue;
      const auto add = [&](int d, int64_t index) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
          if (i < x.operands) offset[k][i] += index * x.operand[i].strides[d];
        }
      };
      if (x.has_divisors)
        for_each_dimension(static_cast<uint32_t>(at), x.rank, x.divisors, add);
      else
        for_each_dimension(at, x.rank, x.shape, add);
#pragma unroll
      for (int i = 0; i < 3; i++) {
        const StridedOperand& operand = x.operand[i + 1];
        if (i + 1 < x.operands && operand.data) bits[i][k] = load_bits(operand.bytes, operand.data, offset[k][i + 1]);
      }
    }
#pragma unroll
    for (int i = 0; i < 3; i++) {
      const StridedOperand& operand = x.operand[i + 1];
      if (i + 1 >= x.operands || !operand.data) continue;
#pragma unroll
      for (int k = 0; k < kAtOnce; k++) values[i][k] = value_of_bits<T>(operand.dtype, bits[i][k]);
    }
    apply<T, kAtOnce>(x.op, result, values[0], values[1], values[2]);
#pragma unroll
    for (int k = 0; k < kAtOnce; k++) {
      if (begin + k * step < x.count) store(x.operand[0].dtype, x.operand[0].data, offset[k][0], result[k]);
    }
  }
}

RINGWISE_KERNEL(map_packs_float, MapPacksArguments) { map_packs<float>(arguments); }
RINGWISE_KERNEL(map_packs_half, MapPacksArguments) { map_packs<Half>(arguments); }
RINGWISE_KERNEL(map_packs_bfloat, MapPacksArguments) { map_packs<BFloat>(arguments); }
RINGWISE_KERNEL(map_dense_float, MapDenseArguments) { map_dense<float>(arguments); }
RINGWISE_KERNEL(map_dense_double, MapDenseArguments) { map_dense<double>(arguments); }
RINGWISE_KERNEL(map_dense_long, MapDenseArguments) { map_dense<int64_t>(arguments); }
RINGWISE_KERNEL(map_strided_float, MapStridedArguments) { map_strided<float>(arguments); }
RINGWISE_KERNEL(map_strided_double, MapStridedArguments) { map_strided<double>(arguments); }
RINGWISE_KERNEL(map_strided_long, MapStridedArguments) { map_strided<int64_t>(arguments); }

}  // namespace ringwise::tensor::cuda
