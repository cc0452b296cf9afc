// Arguments of the fused cross entropy of scores and labels, for every kernel set. All of one type, float32 or float64,
// and dense.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/dtype.h"

namespace ringwise::tensor {

struct CrossEntropy {
  size_t rows, cols;
  const void* scores;  // [rows, cols]
  DType label;         // Int32 or Int64
  const void* labels;  // [rows]
  int64_t ignored;     // rows with this label have loss, count and gradient 0
  double smoothing;    // the share of each label that is spread evenly over all classes
  const void* weight;  // [cols]; null: 1
  void* kept;          // [rows, 2]: the largest score, and log Σ exp(score - largest)
  void* losses;        // [rows]; of the forward alone
  void* counts;        // [rows]: the label's weight; null: not wanted
};

/// The gradient of the scores, given that of the losses / divisor.
struct CrossEntropyGrad {
  CrossEntropy forward;
  void* grad_scores;  // [rows, cols]
  const void* grad;   // [rows], or one for all rows
  bool is_per_row;
  const void* divisor;  // one element; null: `number`
  double number;
};

}  // namespace ringwise::tensor
