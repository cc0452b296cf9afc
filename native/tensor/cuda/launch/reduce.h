// How a reduction is laid out on the device: which dimensions a block walks, how its threads share them, and when a
// long reduction is cut into chunks.
#pragma once

#include "tensor/kernels.h"

namespace ringwise::tensor::cuda {

/// As `reduce` and `arg_reduce` of tensor/kernels.h.
void reduce(ReduceOp op, const Walk& walk);
void arg_reduce(bool is_max, const Walk& walk);

/// The dtype that computes between two: every integer fits into what computes for either side.
DType converting_type(DType to, DType from);

}  // namespace ringwise::tensor::cuda
