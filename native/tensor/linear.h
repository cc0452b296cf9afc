// Arguments of the fused linear layer, for every kernel set: out = activation(x wᵀ + bias), all of one type, float32 or
// float64, and dense.
#pragma once

#include <cstddef>

namespace ringwise::tensor {

// The order is part of the addon's interface; packages/tensor/src/backends/layer-kernels.ts has the same.
enum class Activation : int { None, Relu, Gelu, GeluTanh, Count };

struct Linear {
  size_t rows, outs, ins;
  void* out;         // [rows, outs]
  void* before;      // as out: what the activation is applied to; null: not wanted
  const void* x;     // [rows, ins]
  const void* w;     // [outs, ins]
  const void* bias;  // [outs]; null: none
  Activation activation;
};

/// The gradient of a linear layer. `saved` is the activation's input (gelu) or output (relu).
struct LinearGrad {
  size_t rows, outs;
  void* grad_before;  // [rows, outs]: grad * activation'; may be grad
  void* grad_bias;    // [outs]: its sums over the rows; null: not wanted
  const void* grad;
  const void* saved;
  Activation activation;  // not None
};

}  // namespace ringwise::tensor
