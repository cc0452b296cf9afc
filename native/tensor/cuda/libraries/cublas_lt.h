// Matrix products by NVIDIA's cuBLASLt (libcublasLt), which is loaded on first use. If it is missing or does not
// support a product, our own kernel (matmul.cu) computes it. The declarations are our own, as in cuda_driver.h;
// test/cuda/tensor_cublas_abi_test.cc compares them with cublasLt.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/shared_library.h"
#include "tensor/cuda/device/driver.h"
#include "tensor/kernels.h"

namespace ringwise::tensor::cuda {

using LtHandle = struct LtHandleTag*;
using LtProduct = struct LtProductTag*;
using LtLayout = struct LtLayoutTag*;
using LtPreference = struct LtPreferenceTag*;

/// cublasLtMatmulAlgo_t and cublasLtMatmulHeuristicResult_t.
struct LtAlgorithm {
  uint64_t data[8];
};
struct LtChoice {
  LtAlgorithm algorithm;
  size_t workspace_bytes;
  int status;
  float waves;
  int reserved[4];
};

// Name and arguments of the functions. All return cublasStatus_t.
// clang-format off
#define RINGWISE_CUBLASLT_FUNCTIONS(X)                                                                        \
  X(cublasLtCreate, (LtHandle*))                                                                              \
  X(cublasLtMatmulDescCreate, (LtProduct*, int, int))                                                         \
  X(cublasLtMatmulDescSetAttribute, (LtProduct, int, const void*, size_t))                                    \
  X(cublasLtMatmulDescDestroy, (LtProduct))                                                                   \
  X(cublasLtMatrixLayoutCreate, (LtLayout*, int, uint64_t, uint64_t, int64_t))                                \
  X(cublasLtMatrixLayoutSetAttribute, (LtLayout, int, const void*, size_t))                                   \
  X(cublasLtMatrixLayoutDestroy, (LtLayout))                                                                  \
  X(cublasLtMatmulPreferenceCreate, (LtPreference*))                                                          \
  X(cublasLtMatmulPreferenceSetAttribute, (LtPreference, int, const void*, size_t))                           \
  X(cublasLtMatmulPreferenceDestroy, (LtPreference))                                                          \
  X(cublasLtMatmulAlgoGetHeuristic, (LtHandle, LtProduct, LtLayout, LtLayout, LtLayout, LtLayout,             \
                                     LtPreference, int, LtChoice*, int*))                                     \
  X(cublasLtMatmul, (LtHandle, LtProduct, const void*, const void*, LtLayout, const void*, LtLayout,          \
                     const void*, const void*, LtLayout, void*, LtLayout, const LtAlgorithm*, void*, size_t,  \
                     Stream))
// clang-format on

// Constants of cublasLt.h and library_types.h.
constexpr int kLtReal32 = 0, kLtReal64 = 1, kLtReal16 = 2, kLtBfloat16 = 14;
constexpr int kLtCompute32 = 68, kLtComputeTf32 = 77, kLtCompute64 = 70;
constexpr int kLtTransposeA = 3, kLtTransposeB = 4;                        // attributes of a product
constexpr int kLtEpilogue = 7, kLtBias = 8, kLtAux = 11, kLtAuxStep = 12;  // attributes of a product
// epilogues, combined by |; gelu is the tanh form
constexpr int32_t kLtAddsBias = 4, kLtRelu = 2, kLtGelu = 32, kLtKeepsInput = 128;
constexpr int kLtBatchCount = 5, kLtBatchStride = 6;  // attributes of a layout
// attributes of a preference; the alignments of B, C and D follow that of A
constexpr int kLtMostWorkspace = 1, kLtReductions = 3, kLtAlignmentA = 5;
constexpr uint32_t kLtReduceInComputeType = 2;  // a value of kLtReductions

/// The functions of the library.
struct CublasLt {
#define RINGWISE_DECLARE(name, arguments) int(*name) arguments = nullptr;
  RINGWISE_CUBLASLT_FUNCTIONS(RINGWISE_DECLARE)
#undef RINGWISE_DECLARE
  size_t (*cublasLtGetVersion)() = nullptr;

  SharedLibrary library;
  std::string reason;  // why it cannot be used, with all paths that were tried; empty if it can
};

/// Returns the library, and loads it at the first call. Any thread; never throws.
const CublasLt& cublas_lt();

/// Sets whether float32 factors of products and convolutions may be rounded to TF32 (10 bits of fraction), which is
/// several times as fast. Applies to the process; off initially.
void allow_tf32(bool allowed);
bool allows_tf32();

/// Computes Kernels::matmul for the walk's matrices, whose strides are bytes. Returns false, and starts nothing, if the
/// library is missing or does not support it. Throws std::runtime_error if the library fails.
bool multiply_by_library(const Walk& walk, const MatmulSizes& sizes);

/// Computes Kernels::linear, with bias and activation as the epilogue of the product. Returns false, and starts
/// nothing, if the library is missing or does not support it, or if neither is needed. Throws std::runtime_error if the
/// library fails.
bool linear_by_library(const Linear& x);

}  // namespace ringwise::tensor::cuda
