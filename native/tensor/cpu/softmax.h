// Log-softmax, its gradient and the negative log-likelihood, row by row. Included only by level.h.
namespace ringwise::tensor::RINGWISE_LEVEL {

void log_softmax(float* out, const float* a, size_t rows, size_t cols) {
  for (size_t r = 0; r < rows; r++, out += cols, a += cols) {
    const Vec shift = splat(max_run(a, cols));
    Vec sums = {};
    size_t i = 0;
    for (; i + kLanes <= cols; i += kLanes) sums += exp_vec(load(a + i) - shift);
    // Lanes behind the end add exp(-inf), which is 0.
    constexpr float kNothing = -std::numeric_limits<float>::infinity();
    if (i < cols) sums += exp_vec(load_partial(a + i, cols - i, kNothing) - shift);
    const float sum = over_lanes(sums, [](auto x, auto y) RINGWISE_INLINE { return x + y; });
    const Vec norm = log_vec(splat(sum));
    for_each_vec(cols, [&](size_t c, auto io) RINGWISE_INLINE { io.store(out + c, io.load(a + c) - shift - norm); });
  }
}

void log_softmax_grad(float* grad_in, const float* grad_out, const float* out, size_t rows, size_t cols) {
  for (size_t r = 0; r < rows; r++, grad_in += cols, grad_out += cols, out += cols) {
    const Vec sum = splat(sum_run(grad_out, cols));
    for_each_vec(cols, [&](size_t c, auto io) RINGWISE_INLINE {
      io.store(grad_in + c, io.load(grad_out + c) - exp_vec(io.load(out + c)) * sum);
    });
  }
}

template <class Label>
void nll_of(float* losses, const float* log_probs, const Label* labels, size_t rows, size_t cols) {
  for (size_t r = 0; r < rows; r++) losses[r] = -log_probs[r * cols + static_cast<size_t>(labels[r])];
}

template <class Label>
void nll_grad_of(float* grad_in, const float* grad_losses, const Label* labels, size_t rows, size_t cols) {
  std::fill_n(grad_in, rows * cols, 0.0f);
  for (size_t r = 0; r < rows; r++) grad_in[r * cols + static_cast<size_t>(labels[r])] = -grad_losses[r];
}

void nll(float* losses, const float* log_probs, DType dtype, const void* labels, size_t rows, size_t cols) {
  if (dtype == DType::Int32) nll_of(losses, log_probs, static_cast<const int32_t*>(labels), rows, cols);
  else nll_of(losses, log_probs, static_cast<const int64_t*>(labels), rows, cols);
}

void nll_grad(float* grad_in, const float* grad_losses, DType dtype, const void* labels, size_t rows, size_t cols) {
  if (dtype == DType::Int32) nll_grad_of(grad_in, grad_losses, static_cast<const int32_t*>(labels), rows, cols);
  else nll_grad_of(grad_in, grad_losses, static_cast<const int64_t*>(labels), rows, cols);
}

}  // namespace ringwise::tensor::RINGWISE_LEVEL
