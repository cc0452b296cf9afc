// Log-softmax, its parts and its gradient, and the negative log-likelihood, row by row. Included only by families/.
namespace ringwise::tensor::RINGWISE_LEVEL {

inline float largest_score(const float* a, size_t cols) { return max_run(a, cols); }
inline double largest_score(const double* a, size_t cols) {
  return Extreme<double, true>::run(-std::numeric_limits<double>::infinity(), a, cols);
}

// Return Σ exp(a - largest).
inline float exp_sum(const float* a, size_t cols, float largest) {
  const Vec shift = splat(largest);
  Vec sums = {};
  size_t i = 0;
  for (; i + kLanes <= cols; i += kLanes) sums += exp_vec(load(a + i) - shift);
  // Lanes behind the end add exp(-inf), which is 0.
  constexpr float kNothing = -std::numeric_limits<float>::infinity();
  if (i < cols) sums += exp_vec(load_partial(a + i, cols - i, kNothing) - shift);
  return over_lanes(sums, [](auto x, auto y) RINGWISE_INLINE { return x + y; });
}
inline double exp_sum(const double* a, size_t cols, double largest) {
  double sum = 0;
  for (size_t c = 0; c < cols; c++) sum += std::exp(a[c] - largest);
  return sum;
}

inline float log_of(float x) { return log_vec(splat(x))[0]; }

// Write scale · softmax(a), with kept = {largest score, log Σ exp(a - largest)}.
inline void write_probabilities(float* out, const float* a, size_t cols, const float* kept, float scale) {
  const Vec shift = splat(kept[0]), norm = splat(kept[1]), factor = splat(scale);
  for_each_vec(cols, [&](size_t c, auto io)
                         RINGWISE_INLINE { io.store(out + c, exp_vec(io.load(a + c) - shift - norm) * factor); });
}
inline void write_probabilities(double* out, const double* a, size_t cols, const double* kept, double scale) {
  for (size_t c = 0; c < cols; c++) out[c] = std::exp(a[c] - kept[0] - kept[1]) * scale;
}

template <class T>
void log_softmax_rows(T* out, const T* a, size_t rows, size_t cols) {
  for (size_t r = 0; r < rows; r++, out += cols, a += cols) {
    const T largest = largest_score(a, cols), log_sum = log_of(exp_sum(a, cols, largest));
    for_each_element<T>(
        cols, [&](size_t c, auto io) RINGWISE_INLINE { io.store(out + c, io.load(a + c) - largest - log_sum); });
  }
}

void log_softmax_grad_rows(float* grad_in, const float* grad_out, const float* out, size_t rows, size_t cols) {
  for (size_t r = 0; r < rows; r++, grad_in += cols, grad_out += cols, out += cols) {
    const Vec sum = splat(static_cast<float>(sum_run(grad_out, cols)));
    for_each_vec(cols, [&](size_t c, auto io) RINGWISE_INLINE {
      io.store(grad_in + c, io.load(grad_out + c) - exp_vec(io.load(out + c)) * sum);
    });
  }
}

void log_softmax_grad_rows(double* grad_in, const double* grad_out, const double* out, size_t rows, size_t cols) {
  for (size_t r = 0; r < rows; r++, grad_in += cols, grad_out += cols, out += cols) {
    const double sum = Sum<double>::run(0, grad_out, cols);
    for (size_t c = 0; c < cols; c++) grad_in[c] = grad_out[c] - std::exp(out[c]) * sum;
  }
}

template <class T, class Label>
void nll_rows(T* losses, const T* log_probs, const Label* labels, size_t rows, size_t cols) {
  for (size_t r = 0; r < rows; r++) losses[r] = -log_probs[r * cols + static_cast<size_t>(labels[r])];
}

template <class T, class Label>
void nll_grad_rows(T* grad_in, const T* grad_losses, const Label* labels, size_t rows, size_t cols) {
  std::fill_n(grad_in, rows * cols, T{});
  for (size_t r = 0; r < rows; r++) grad_in[r * cols + static_cast<size_t>(labels[r])] = -grad_losses[r];
}

// Calls body(first row, rows) on threads that share the rows. An element costs more than in elementwise operations, so
// fewer elements are worth a thread.
template <class Body>
inline void for_row_blocks(size_t rows, size_t cols, Body body) {
  const size_t grain = kGrain / 4 / std::max<size_t>(cols, 1);
  parallel_for(rows, grain, [&](size_t begin, size_t end) { body(begin, end - begin); });
}

void log_softmax(const LogSoftmax& x) {
  with_float(x.dtype, [&](auto type) {
    using T = decltype(type);
    for_row_blocks(x.rows, x.cols, [&](size_t first, size_t count) {
      const size_t at = first * x.cols;
      log_softmax_rows(static_cast<T*>(x.out) + at, static_cast<const T*>(x.a) + at, count, x.cols);
    });
  });
}

void log_softmax_grad(const LogSoftmaxGrad& x) {
  with_float(x.dtype, [&](auto type) {
    using T = decltype(type);
    for_row_blocks(x.rows, x.cols, [&](size_t first, size_t count) {
      const size_t at = first * x.cols;
      log_softmax_grad_rows(static_cast<T*>(x.grad_in) + at, static_cast<const T*>(x.grad_out) + at,
                            static_cast<const T*>(x.out) + at, count, x.cols);
    });
  });
}

void nll(const Nll& x) {
  with_float(x.dtype, [&](auto type) {
    using T = decltype(type);
    with_label(x.labels_dtype, [&](auto index) {
      nll_rows(static_cast<T*>(x.losses), static_cast<const T*>(x.log_probs),
               static_cast<const decltype(index)*>(x.labels), x.rows, x.cols);
    });
  });
}

void nll_grad(const NllGrad& x) {
  with_float(x.dtype, [&](auto type) {
    using T = decltype(type);
    with_label(x.labels_dtype, [&](auto index) {
      nll_grad_rows(static_cast<T*>(x.grad_in), static_cast<const T*>(x.grad_losses),
                    static_cast<const decltype(index)*>(x.labels), x.rows, x.cols);
    });
  });
}

}  // namespace ringwise::tensor::RINGWISE_LEVEL
