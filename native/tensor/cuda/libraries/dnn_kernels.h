// What cuDNN computes for the kernel table, from plans that are kept by shape. Each function returns false when the
// library is missing or has no plan for this; nothing has been started then, and the own kernels compute.
#pragma once

#include "tensor/cuda/libraries/cudnn_graph.h"
#include "tensor/kernels.h"

namespace ringwise::tensor::cuda {

/// The convolution of `kind` between dense memory; writes the operand that it computes, or adds to it.
bool convolve_by_library(Convolution kind, DType dtype, void* x, void* weight, void* y, const ConvSizes& sizes,
                         bool accumulate);

/// The graph of one; the ids of its tensors are 1 (x), 2 (weight) and 3 (y).
DnnGraph convolution_graph(Convolution kind, DType dtype, const ConvSizes& sizes, const int64_t (&alignments)[3]);

/// As Kernels::attention and its gradient.
bool attend_by_library(DType dtype, const Attention& attention);
bool attend_back_by_library(DType dtype, const AttentionGrad& grad);

DnnGraph attention_graph(DType dtype, const Attention& attention);
DnnGraph attention_grad_graph(DType dtype, const AttentionGrad& grad);

}  // namespace ringwise::tensor::cuda
