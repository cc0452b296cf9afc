// Elementwise operations and copies: the host's side of kernels/map.cu.
#include <algorithm>
#include <bit>

#include "tensor/cuda/launch/kernels.h"
#include "tensor/cuda/launch/launch.h"

namespace ringwise::tensor::cuda {

namespace {

bool is_empty(const Walk& walk) {
  return std::any_of(walk.shape, walk.shape + walk.rank, [](size_t size) { return size == 0; });
}

/// Returns one of three kernels, by the computing type of a dtype.
KernelId by_type(DType compute, KernelId of_float, KernelId of_double, KernelId of_long) {
  switch (compute) {
    case DType::Float64: return of_double;
    case DType::Float32:
    case DType::Float16:
    case DType::BFloat16: return of_float;
    default: return of_long;
  }
}

double number_of(const Operand& operand) {
  return operand.is_number ? *reinterpret_cast<const double*>(operand.data) : 0;
}
void* data_of(const Operand& operand) { return operand.is_number ? nullptr : operand.data; }

/// Returns whether every operand of a simplified walk is dense, or one element or a number for all (not the output).
bool is_dense(const Walk& walk) {
  if (walk.rank != 1) return false;
  for (int i = 0; i < walk.operands; i++) {
    const Operand& operand = walk.operand[i];
    const bool is_one = operand.is_number || operand.strides[0] == 0;
    if (!is_one && operand.strides[0] != static_cast<ptrdiff_t>(byte_size(operand.dtype))) return false;
    if (is_one && i == 0 && walk.shape[0] != 1) return false;
  }
  return true;
}

void map_dense(int op, DType compute, const Walk& walk) {
  MapDenseArguments x{};
  x.count = static_cast<int64_t>(walk.shape[0]);
  x.op = op;
  x.operands = walk.operands;
  x.use_packs = 1;
  for (int i = 0; i < walk.operands; i++) {
    const Operand& operand = walk.operand[i];
    const bool is_one = i > 0 && (operand.is_number || operand.strides[0] == 0);
    x.operand[i] = {data_of(operand), number_of(operand), static_cast<int32_t>(operand.dtype), is_one ? 0 : 1};
    const size_t pack = std::min<size_t>(16, 4 * byte_size(operand.dtype));
    if (!is_one && reinterpret_cast<uintptr_t>(operand.data) % pack != 0) x.use_packs = 0;
  }
  launch_over((walk.shape[0] + 3) / 4,
              by_type(compute, KernelId::map_dense_float, KernelId::map_dense_double, KernelId::map_dense_long), x);
}

Divisor divisor_of(size_t size) {
  const auto value = static_cast<uint32_t>(size);
  const auto shift = static_cast<uint32_t>(std::bit_width(value - 1));  // the least with value <= 2^shift
  const uint64_t magic = ((uint64_t{1} << 32) * ((uint64_t{1} << shift) - value)) / value + 1;
  return {value, static_cast<uint32_t>(magic), shift};
}

/// Returns whether a simplified walk can be computed in packs of 16 bytes: in float, with operands that are numbers, or
/// have the dtype of the result and are dense and aligned, or constant, along the last dimension.
bool takes_wide_packs(DType compute, const Walk& walk) {
  const Operand& out = walk.operand[0];
  const int last = walk.rank - 1;
  const size_t pack = 16 / byte_size(out.dtype);
  const bool is_float = compute == DType::Float32 || is_half(compute);
  if (!is_float || (out.dtype != DType::Float32 && !is_half(out.dtype)) || walk.shape[last] % pack != 0) return false;
  size_t packs = walk.shape[last] / pack;
  for (int d = 0; d < last; d++) packs *= walk.shape[d];
  if (packs > INT32_MAX) return false;
  for (int i = 0; i < walk.operands; i++) {
    const Operand& operand = walk.operand[i];
    if (operand.is_number) continue;
    if (operand.dtype != out.dtype) return false;
    if (i > 0 && operand.strides[last] == 0) continue;
    if (operand.strides[last] != static_cast<ptrdiff_t>(byte_size(out.dtype))) return false;
    if (reinterpret_cast<uintptr_t>(operand.data) % 16 != 0) return false;
    for (int d = 0; d < last; d++) {
      if (operand.strides[d] % 16 != 0) return false;
    }
  }
  return true;
}

void map_packs(int op, const Walk& walk) {
  const DType dtype = walk.operand[0].dtype;
  const int last = walk.rank - 1;
  const size_t pack = 16 / byte_size(dtype);
  MapPacksArguments x{};
  x.op = op;
  x.operands = walk.operands;
  x.rank = walk.rank;
  x.count = 1;
  for (int d = 0; d < walk.rank; d++) {
    const size_t size = d == last ? walk.shape[d] / pack : walk.shape[d];
    x.shape[d] = divisor_of(size);
    x.count *= static_cast<int64_t>(size);
  }
  for (int i = 0; i < walk.operands; i++) {
    const Operand& operand = walk.operand[i];
    PackOperand& to = x.operand[i];
    to.data = data_of(operand);
    to.number = number_of(operand);
    if (operand.is_number) continue;
    to.is_dense = operand.strides[last] != 0;
    for (int d = 0; d < walk.rank; d++)
      to.strides[d] = operand.strides[d] * static_cast<ptrdiff_t>(d == last ? pack : 1);
  }
  launch_over(static_cast<size_t>(x.count),
              dtype == DType::Float32   ? KernelId::map_packs_float
              : dtype == DType::Float16 ? KernelId::map_packs_half
                                        : KernelId::map_packs_bfloat,
              x);
}

void map_strided(int op, DType compute, const Walk& walk) {
  MapStridedArguments x{};
  x.op = op;
  x.operands = walk.operands;
  x.rank = walk.rank;
  x.count = 1;
  for (int d = 0; d < walk.rank; d++) {
    x.shape[d] = static_cast<int64_t>(walk.shape[d]);
    x.count *= x.shape[d];
  }
  x.has_divisors = x.count <= INT32_MAX;
  for (int d = 0; d < walk.rank && x.has_divisors; d++) x.divisors[d] = divisor_of(walk.shape[d]);
  for (int i = 0; i < walk.operands; i++) {
    const Operand& operand = walk.operand[i];
    x.operand[i].data = data_of(operand);
    x.operand[i].number = number_of(operand);
    x.operand[i].dtype = static_cast<int32_t>(operand.dtype);
    x.operand[i].bytes = static_cast<int32_t>(byte_size(operand.dtype));
    for (int d = 0; d < walk.rank; d++) x.operand[i].strides[d] = operand.is_number ? 0 : operand.strides[d];
  }
  launch_over((static_cast<size_t>(x.count) + 1) / 2,
              by_type(compute, KernelId::map_strided_float, KernelId::map_strided_double, KernelId::map_strided_long),
              x);
}

void map_simplified(int op, DType compute, const Walk& walk) {
  if (is_empty(walk)) return;
  if (takes_wide_packs(compute, walk))
    map_packs(op, walk);
  else if (is_dense(walk))
    map_dense(op, compute, walk);
  else
    map_strided(op, compute, walk);
}

}  // namespace

void map(const Map& x) { map_simplified(static_cast<int>(x.op), x.compute, simplified(x.walk)); }

void copy(const Copy& x) {
  const Walk simple = simplified(x.walk);
  const Operand &out = simple.operand[0], &in = simple.operand[1];
  const bool is_block = simple.rank == 1 && out.dtype == in.dtype && !in.is_number && is_dense(simple) &&
                        (in.strides[0] != 0 || simple.shape[0] == 1);
  if (is_block) return current_device().copy(out.data, in.data, simple.shape[0] * byte_size(out.dtype));
  map_simplified(kIdentity, converting_type(out.dtype, in.dtype), simple);
}

}  // namespace ringwise::tensor::cuda
