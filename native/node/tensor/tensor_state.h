// The state of this addon in one environment (the main thread or a worker thread). Each environment loads its own
// instance, and only its JavaScript thread touches the state. Node frees it when the environment ends.
#pragma once

#include <napi.h>

#include "tensor/block_table.h"
#include "tensor/kernels.h"

namespace ringwise::node {

struct TensorState {
  const tensor::Kernels* kernels = &tensor::kernels_for(tensor::CpuLevel::Avx512);
  tensor::BlockTable blocks;
  // Operands are passed in this array, so that no call creates objects. It has two numbers for each operand: a handle
  // and the offset of its first element, or 0 and a value. Then come rank, shape and the strides of each operand, and
  // last the numbers of the call.
  Napi::ObjectReference scratch_owner;
  const double* scratch = nullptr;
};

// packages/tensor/src/backends/native/layout.ts has the same numbers. A call of a dense kernel uses the space of shape
// and strides for more operands, and for the four strides of each operand [batch, heads, rows, width].
constexpr size_t kMostDenseOperands = 12;
constexpr size_t kRowStridesAt = 2 * kMostDenseOperands;
constexpr size_t kNumbersAt = 2 * tensor::kMaxOperands + 1 + (1 + tensor::kMaxOperands) * tensor::kMaxRank;
constexpr size_t kMostNumbers = 24;
static_assert(kRowStridesAt + 4 * kMostDenseOperands <= kNumbersAt);
constexpr size_t kScratchCount = kNumbersAt + kMostNumbers;

}  // namespace ringwise::node
