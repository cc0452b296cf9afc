// What the vendor's libraries compute for CUDA devices: on the software device by its own functions of their names, on a
// GPU by the libraries that are found there.
#include "tensor/cuda/cublas_lt.h"
#include "tensor_cuda_attention.h"
#include "tensor_cuda_convolutions.h"
#include "tensor_cuda_products.h"

using namespace ringwise;
using namespace ringwise::tensor;
using namespace ringwise::test;

TEST("products of every float type are done by cublasLt, transposed, strided, in batches and added") {
  CHECK_EQ(gpu::cublas_lt().reason, "");
  check_products(80, &gpu::multiply_by_library);
}

TEST("convolutions of every float type are done by cuDNN, with their gradients, written and added") {
  CHECK_EQ(gpu::cudnn().reason, "");
  check_convolutions(80, &gpu::convolve_by_library);
}

TEST("attention of halves and its gradients are done by cuDNN, inside of packed rows too") {
  for (int round = 0; round < 24; round++) {
    Attention sizes{};
    sizes.batch = 1 + below(2);
    sizes.heads = 1 + below(2);
    sizes.queries = 2 + below(40);
    sizes.keys = 2 + below(40);
    sizes.width = 8 * (1 + below(4));
    sizes.value_width = round % 3 ? sizes.width : 8 * (1 + below(4));
    sizes.scale = 1 / std::sqrt(static_cast<double>(sizes.width));
    sizes.causal = below(2);
    check_attention(round % 2 ? DType::Float16 : DType::BFloat16, sizes, 8 * below(3), 0, &gpu::attend_by_library, &gpu::attend_back_by_library);
  }
}

int main() { return run_on_device(true); }
