// Matrix products by the vendor's library (libcublasLt), opened when one is first needed; where it is missing, or has
// nothing for a product, the kernel of kernels/matmul.cu computes. The declarations are our own, as in driver.h;
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

// name, arguments. All return cublasStatus_t.
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

// Numbers of cublasLt.h and library_types.h that are used here.
constexpr int kLtReal32 = 0, kLtReal64 = 1, kLtReal16 = 2, kLtBfloat16 = 14;
constexpr int kLtCompute32 = 68, kLtComputeTf32 = 77, kLtCompute64 = 70;
constexpr int kLtTransposeA = 3, kLtTransposeB = 4;                        // attributes of a product
constexpr int kLtEpilogue = 7, kLtBias = 8, kLtAux = 11, kLtAuxStep = 12;  // the same
constexpr int32_t kLtAddsBias = 4, kLtRelu = 2, kLtGelu = 32,
                  kLtKeepsInput = 128;                                     // epilogues, or-ed; its gelu is that by tanh
constexpr int kLtBatchCount = 5, kLtBatchStride = 6;                       // of a layout
constexpr int kLtMostWorkspace = 1, kLtReductions = 3, kLtAlignmentA = 5;  // of a preference; B, C and D follow A
constexpr uint32_t kLtReduceInComputeType = 2;                             // among reductions

struct CublasLt {
#define RINGWISE_DECLARE(name, arguments) int(*name) arguments = nullptr;
  RINGWISE_CUBLASLT_FUNCTIONS(RINGWISE_DECLARE)
#undef RINGWISE_DECLARE
  size_t (*cublasLtGetVersion)() = nullptr;

  SharedLibrary library;
  std::string reason;  // why it cannot be used, with every path that was tried; empty when it can
};

/// Opened at the first call, in any thread. Never throws.
const CublasLt& cublas_lt();

/// Whether float32 factors of products and convolutions may be rounded to TF32 (10 bits), which is several times as
/// fast. Off at first; for the process.
void allow_tf32(bool allowed);
bool allows_tf32();

/// As Kernels::matmul_walk. False when the library cannot do it, and nothing has been started.
bool multiply_by_library(const Walk& walk, const MatmulSizes& sizes);

/// As Kernels::linear, of any float type: what comes after the product is its epilogue. False when the library has no
/// such epilogue, and nothing has been started.
bool linear_by_library(DType dtype, const Linear& x);

}  // namespace ringwise::tensor::cuda
