// Compares the declarations of tensor/cuda/libraries/cublas_lt.h with the vendor's if cublasLt.h is installed. If the
// library is found, also checks that it has all functions, and that those that need no device work.
#include <cstdio>

#include "tensor/cuda/libraries/cublas_lt.h"
#include "test/abi.h"

#if __has_include(<cublasLt.h>)
#include <cublasLt.h>

namespace {

using ringwise::tensor::cuda::CublasLt;
#define COMPARE(name, arguments) \
  static_assert(Same<decltype(CublasLt::name), decltype(&::name)>::value, #name " is not declared as in cublasLt.h");
RINGWISE_CUBLASLT_FUNCTIONS(COMPARE)
static_assert(Same<decltype(CublasLt::cublasLtGetVersion), decltype(&::cublasLtGetVersion)>::value);

namespace cuda = ringwise::tensor::cuda;
static_assert(sizeof(cuda::LtAlgorithm) == sizeof(cublasLtMatmulAlgo_t));
static_assert(sizeof(cuda::LtChoice) == sizeof(cublasLtMatmulHeuristicResult_t));
static_assert(offsetof(cuda::LtChoice, workspace_bytes) == offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize));
static_assert(offsetof(cuda::LtChoice, status) == offsetof(cublasLtMatmulHeuristicResult_t, state));
static_assert(cuda::kLtReal32 == CUDA_R_32F && cuda::kLtReal64 == CUDA_R_64F);
static_assert(cuda::kLtReal16 == CUDA_R_16F && cuda::kLtBfloat16 == CUDA_R_16BF);
static_assert(cuda::kLtReductions == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK);
static_assert(cuda::kLtReduceInComputeType == CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
static_assert(cuda::kLtCompute32 == CUBLAS_COMPUTE_32F && cuda::kLtCompute64 == CUBLAS_COMPUTE_64F);
static_assert(cuda::kLtComputeTf32 == CUBLAS_COMPUTE_32F_FAST_TF32 && CUBLAS_OP_N == 0 && CUBLAS_OP_T == 1);
static_assert(cuda::kLtTransposeA == CUBLASLT_MATMUL_DESC_TRANSA && cuda::kLtTransposeB == CUBLASLT_MATMUL_DESC_TRANSB);
static_assert(cuda::kLtEpilogue == CUBLASLT_MATMUL_DESC_EPILOGUE && cuda::kLtBias == CUBLASLT_MATMUL_DESC_BIAS_POINTER);
static_assert(cuda::kLtAux == CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER &&
              cuda::kLtAuxStep == CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD);
static_assert(cuda::kLtAddsBias == CUBLASLT_EPILOGUE_BIAS &&
              (cuda::kLtRelu | cuda::kLtAddsBias) == CUBLASLT_EPILOGUE_RELU_BIAS);
static_assert((cuda::kLtGelu | cuda::kLtKeepsInput | cuda::kLtAddsBias) == CUBLASLT_EPILOGUE_GELU_AUX_BIAS);
static_assert(cuda::kLtBatchCount == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
static_assert(cuda::kLtBatchStride == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
static_assert(cuda::kLtMostWorkspace == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
static_assert(cuda::kLtAlignmentA == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
static_assert(cuda::kLtAlignmentA + 3 == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);

constexpr int kHeader = CUBLAS_VERSION;

}  // namespace
#else
constexpr int kHeader = 0;
#endif

int main() {
  if (kHeader)
    std::printf("compared with cublasLt.h %d\n", kHeader);
  else
    std::printf("declarations: skipped, cublasLt.h is not installed\n");
  const ringwise::tensor::cuda::CublasLt& lt = ringwise::tensor::cuda::cublas_lt();
  if (!lt.library.is_open()) {
    std::printf("library: skipped, %s\n", lt.reason.c_str());
    return 0;
  }
  if (!lt.reason.empty()) {
    std::printf("%s\n", lt.reason.c_str());
    return 1;
  }
  using namespace ringwise::tensor::cuda;
  LtLayout layout = nullptr;
  LtProduct product = nullptr;
  const int32_t one = 1;
  const bool is_answering = lt.cublasLtGetVersion() >= 120000 &&
                            lt.cublasLtMatrixLayoutCreate(&layout, kLtReal32, 4, 3, 8) == 0 &&
                            lt.cublasLtMatrixLayoutSetAttribute(layout, kLtBatchCount, &one, sizeof one) == 0 &&
                            lt.cublasLtMatmulDescCreate(&product, kLtComputeTf32, kLtReal32) == 0 &&
                            lt.cublasLtMatmulDescSetAttribute(product, kLtTransposeB, &one, sizeof one) == 0 &&
                            lt.cublasLtMatmulDescDestroy(product) == 0 && lt.cublasLtMatrixLayoutDestroy(layout) == 0;
  std::printf("%s: version %zu %s\n", lt.library.path().c_str(), lt.cublasLtGetVersion(),
              is_answering ? "answers" : "refuses");
  return is_answering ? 0 : 1;
}
