// The fused linear layer: bias and activation are applied to each block of the product while it is in the cache. The
// gradient multiplies by the activation's slope and sums for the bias in one pass. Included only by families/.
namespace ringwise::tensor::RINGWISE_LEVEL {

inline void linear_double(const Linear& x) {
  const auto* bias = static_cast<const double*>(x.bias);
  double* before = static_cast<double*>(x.before ? x.before : x.out);
  double* out = static_cast<double*>(x.out);
  multiply_doubles(before, static_cast<const double*>(x.x), static_cast<const double*>(x.w),
                   {x.rows, x.outs, x.ins, x.ins, x.ins, false, true, false});
  with_activation(x.activation, [&](auto function, auto) {
    for (size_t i = 0; i < x.rows * x.outs; i++) {
      if (bias) before[i] += bias[i % x.outs];
      out[i] = function(before[i]);
    }
  });
}

void linear(const Linear& x) {
  if (x.dtype == DType::Float64) return linear_double(x);
  float* out = static_cast<float*>(x.out);
  multiply_matrices(x.before ? static_cast<float*>(x.before) : out, static_cast<const float*>(x.x),
                    static_cast<const float*>(x.w), {x.rows, x.outs, x.ins, x.ins, x.ins, false, true, false},
                    {out, static_cast<const float*>(x.bias), x.activation});
}

constexpr size_t kSumRows = 64;  // rows that are summed before their sum is added to the total

// Computes columns [begin, begin + cols) of both gradients, at most kTile of them.
template <class T, class Gradient>
inline void linear_grad_columns(const LinearGrad& x, size_t begin, size_t cols, Gradient gradient) {
  alignas(64) T total[kTile], sum[kTile];
  std::fill_n(total, cols, T{});
  for (size_t first = 0; first < x.rows; first += kSumRows) {
    std::fill_n(sum, cols, T{});
    for (size_t r = first; r < std::min(x.rows, first + kSumRows); r++) {
      const size_t at = r * x.outs + begin;
      const T* grad = static_cast<const T*>(x.grad) + at;
      const T* saved = static_cast<const T*>(x.saved) + at;
      T* out = static_cast<T*>(x.grad_before) + at;
      for_each_element<T>(cols, [&](size_t j, auto io) RINGWISE_INLINE {
        const auto value = gradient(io.load(grad + j), io.load(saved + j));
        io.store(out + j, value);
        io.store(sum + j, io.load(sum + j) + value);
      });
    }
    for (size_t j = 0; j < cols; j++) total[j] += sum[j];
  }
  if (x.grad_bias) std::copy_n(total, cols, static_cast<T*>(x.grad_bias) + begin);
}

// Threads share columns, so that one thread computes each sum.
void linear_grad(const LinearGrad& x) {
  const size_t grain = kGrain / std::max<size_t>(x.rows, 1) + 1;
  parallel_for(x.outs, grain, [&](size_t begin, size_t end) {
    with_activation(x.activation, [&](auto, auto gradient) {
      for (size_t j = begin; j < end; j += kTile) {
        const size_t cols = std::min(end - j, kTile);
        if (x.dtype == DType::Float64)
          linear_grad_columns<double>(x, j, cols, gradient);
        else
          linear_grad_columns<float>(x, j, cols, gradient);
      }
    });
  });
}

}  // namespace ringwise::tensor::RINGWISE_LEVEL
