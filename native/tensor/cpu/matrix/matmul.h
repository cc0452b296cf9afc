// Products of batches of matrices. Included only by the files of families/.
namespace ringwise::tensor::RINGWISE_LEVEL {

// Computes one product for each index of the walk, whose strides are bytes and whose last dimension has size 1. Threads
// share the batch if one product is too small to be shared, else each product in turn.
void matmul(const Matmul& x) {
  const size_t products = x.m * x.n * x.k;
  const size_t grain = products < kGrainProducts ? kGrainProducts / std::max<size_t>(products, 1)
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
