// Products of batches of matrices. Included only by tensor/cpu/families/, which is compiled once for each kernel level.
namespace ringwise::tensor::RINGWISE_LEVEL {

// Computes one matrix product for each index of the walk, the dimensions of the batch; its strides are bytes, and its
// last dimension has size 1. Threads share the batch if one product is too small for two threads (parts_of() in
// gemm.h), else they share each product, one after another.
void matmul(const Matmul& x) {
  const size_t multiplications = x.m * x.n * x.k;
  const size_t grain = multiplications < 2 * kGrainProducts
                           ? std::max<size_t>(kGrainProducts / std::max<size_t>(multiplications, 1), 1)
                           : std::numeric_limits<size_t>::max() / 2;
  const bool is_double = x.walk.operand[0].dtype == DType::Float64;
  const auto one = [&](char* const* at) {
    if (is_double)
      multiply_doubles(reinterpret_cast<double*>(at[0]), reinterpret_cast<const double*>(at[1]),
                       reinterpret_cast<const double*>(at[2]), x);
    else
      multiply_matrices(reinterpret_cast<float*>(at[0]), reinterpret_cast<const float*>(at[1]),
                        reinterpret_cast<const float*>(at[2]), x, {});
  };
  for_each_part_of(x.walk, grain, [&](const Walk& part) { for_each_row(part, one); });
}

}  // namespace ringwise::tensor::RINGWISE_LEVEL
