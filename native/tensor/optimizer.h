// What an optimiser step is, for every kernel set: a rule with its numbers, and a list of tensors that it is applied
// to.
#pragma once

#include <cstddef>

#include "base/dtype.h"
#include "tensor/declared_kernels.h"

namespace ringwise::tensor {

/// Which numbers a kind reads is said by its rule in packages/tensor/src/backends/kernels.ts.
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

/// One parameter, dense: float32 or float64, as is everything that belongs to it.
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

/// The root of the sum of the squares of all elements of all `param`, summed in double.
struct TotalNorm {
  const OptimizerTensor* tensors;
  size_t count;
  float* norm;  // where the result goes; on the device of the tensors
};

/// Multiplies every `param`.
struct Scale {
  const OptimizerTensor* tensors;
  size_t count;
  const float* factor;  // on the device of the tensors; null: `number`
  double number;
  float* not_finite;  // becomes 1 if any element was not finite; null: not wanted
};

}  // namespace ringwise::tensor
