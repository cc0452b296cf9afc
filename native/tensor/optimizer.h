// The arguments of the kernels over many tensors: an optimiser step (a rule with its numbers, and the tensors to which
// it is applied), the norm of all tensors together, and scaling.
#pragma once

#include <cstddef>

#include "base/dtype.h"
#include "tensor/declared_kernels.h"

namespace ringwise::tensor {

/// The rules in packages/tensor/src/backends/kernels.ts say which numbers each kind reads.
struct OptimizerRule {
  OptimizerKind kind = OptimizerKind::Sgd;
  double lr = 0, weight_decay = 0;
  double momentum = 0;   // sgd, rmsprop; the first beta of adam and lion
  double smoothing = 0;  // the second beta of adam and lion; rmsprop's alpha; sgd's dampening
  double epsilon = 0;
  bool maximize = false;
  bool variant = false;  // sgd: nesterov; adam: decoupled weight decay; rmsprop: centered
};

constexpr size_t kOptimizerStates = 3;

/// A parameter with its gradient and states, all dense, of `count` elements and of one dtype: float32 or float64.
struct OptimizerTensor {
  DType dtype;
  size_t count;
  double steps;  // 1 in the parameter's first step
  void* param;
  const void* grad;
  /// State of earlier steps; null where the rule needs none. sgd: velocity. adam: mean, mean square, its maximum.
  /// rmsprop: mean square, velocity, mean. lion: mean. Zeros before the first step.
  void* state[kOptimizerStates];
};

/// One step of an optimiser for all tensors.
struct Optimize {
  OptimizerRule rule;
  const OptimizerTensor* tensors;
  size_t count;
};

/// Computes the root of the sum of the squares of all elements of all `param`, summed in double.
struct TotalNorm {
  const OptimizerTensor* tensors;
  size_t count;
  float* norm;  // where the result goes; on the device of the tensors
};

/// Multiplies every `param` by one number.
struct Scale {
  const OptimizerTensor* tensors;
  size_t count;
  const float* factor;  // the number, on the device of the tensors; null: `number`
  double number;
  float* not_finite;  // becomes 1 if any element was not finite, else stays as it is; null: not wanted
};

}  // namespace ringwise::tensor
