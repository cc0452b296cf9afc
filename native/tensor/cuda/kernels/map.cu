// Elementwise operations, copies and conversions. Memory bandwidth limits the speed, so dense operands are moved four
// elements at a time; operands of other strides one by one.
#include "tensor/cuda/kernels/functions.cuh"

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

template <class T>
__device__ void map_strided(const MapStridedArguments& x) {
  for_each_of_grid(x.count, [&](int64_t i) {
    int64_t offset[4] = {};
    for_each_dimension(i, x.rank, x.shape, [&](int d, int64_t index) {
#pragma unroll
      for (int k = 0; k < 4; k++) {
        if (k < x.operands) offset[k] += index * x.operand[k].strides[d];
      }
    });
    T values[3] = {};
#pragma unroll
    for (int k = 0; k < 3; k++) {
      const StridedOperand& operand = x.operand[k + 1];
      if (k + 1 < x.operands) {
        values[k] = operand.data ? load<T>(operand.dtype, operand.data, offset[k + 1]) : read_as<T>(operand.number);
      }
    }
    T result{};
    apply<T, 1>(x.op, &result, values, values + 1, values + 2);
    store(x.operand[0].dtype, x.operand[0].data, offset[0], result);
  });
}

RINGWISE_KERNEL(map_dense_float, MapDenseArguments) { map_dense<float>(arguments); }
RINGWISE_KERNEL(map_dense_double, MapDenseArguments) { map_dense<double>(arguments); }
RINGWISE_KERNEL(map_dense_long, MapDenseArguments) { map_dense<int64_t>(arguments); }
RINGWISE_KERNEL(map_strided_float, MapStridedArguments) { map_strided<float>(arguments); }
RINGWISE_KERNEL(map_strided_double, MapStridedArguments) { map_strided<double>(arguments); }
RINGWISE_KERNEL(map_strided_long, MapStridedArguments) { map_strided<int64_t>(arguments); }

}  // namespace ringwise::tensor::cuda
