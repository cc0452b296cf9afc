// The kernels that cuDNN computes, with plans that are cached by shape. Each function returns false if the library is
// missing, has no plan or fails. The caller then uses our own kernels, which overwrite any result of the library.
#pragma once

#include "tensor/cuda/libraries/cudnn_graph.h"
#include "tensor/kernels.h"

namespace ringwise::tensor::cuda {

/// Computes the convolution of `kind` on dense memory. Writes the operand that it computes, or adds to it if
/// `accumulate`.
bool convolve_by_library(Convolution kind, DType dtype, void* x, void* weight, void* y, const ConvSizes& sizes,
                         bool accumulate);

/// Returns the graph of a convolution; the ids of its tensors are 1 (x), 2 (weight) and 3 (y).
DnnGraph convolution_graph(Convolution kind, DType dtype, const ConvSizes& sizes, const int64_t (&alignments)[3]);

/// Compute Kernels::attention and Kernels::attention_grad.
bool attend_by_library(const Attention& attention);
bool attend_back_by_library(const AttentionGrad& grad);

/// Return the graphs of attention and of its gradient. The numbers of their tensors are in dnn_attention.cc.
DnnGraph attention_graph(const Attention& attention);
DnnGraph attention_grad_graph(const AttentionGrad& grad);

}  // namespace ringwise::tensor::cuda
