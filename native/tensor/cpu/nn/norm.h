// Layer and root-mean-square normalisation of rows (Ba, Kiros, Hinton: "Layer Normalization", 2016; Zhang, Sennrich:
// "Root Mean Square Layer Normalization", 2019). A row is read several times, from the L1 cache if it fits there.
// Included only by families/.
namespace ringwise::tensor::RINGWISE_LEVEL {

// Add the lanes in the order of their halves; float64 has one lane.
inline float lane_sum(Vec v) {
  return over_lanes(v, [](auto x, auto y) RINGWISE_INLINE { return x + y; });
}
inline double lane_sum(double x) { return x; }

struct OneDouble {
  static double load(const double* p) { return *p; }
  static void store(double* p, double value) { *p = value; }
};
// Do what for_each_vec does, for either computing type.
template <class Body>
RINGWISE_INLINE inline void for_each_unit(float, size_t count, Body body) {
  for_each_vec(count, body);
}
template <class Body>
RINGWISE_INLINE inline void for_each_unit(double, size_t count, Body body) {
  for (size_t i = 0; i < count; i++) body(i, OneDouble{});
}
template <class T>
using UnitOf = std::conditional_t<std::is_same_v<T, float>, Vec, double>;

// Return Σ (a - shift)².
inline float square_sum(const float* a, size_t count, float shift) {
  const Vec center = splat(shift);
  Vec sum = {};
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const Vec d = load(a + i) - center;
    sum += d * d;
  }
  if (i < count) {
    const Vec d = load_partial(a + i, count - i, shift) - center;
    sum += d * d;
  }
  return lane_sum(sum);
}
inline double square_sum(const double* a, size_t count, double shift) {
  double sum = 0;
  for (size_t i = 0; i < count; i++) sum += (a[i] - shift) * (a[i] - shift);
  return sum;
}

template <class T>
void norm_rows(const Norm& x) {
  using U = UnitOf<T>;
  const T* gamma = static_cast<const T*>(x.gamma);
  const T* beta = static_cast<const T*>(x.beta);
  const T count = static_cast<T>(x.cols);
  for (size_t r = 0; r < x.rows; r++) {
    const T* a = static_cast<const T*>(x.a) + r * x.cols;
    T* out = static_cast<T*>(x.out) + r * x.cols;
    if (x.addend) {
      const T* addend = static_cast<const T*>(x.addend) + r * x.cols;
      T* sum = static_cast<T*>(x.sum) + r * x.cols;
      for_each_unit(T{}, x.cols, [&](size_t i, auto io) RINGWISE_INLINE {
        io.store(sum + i, io.load(a + i) + io.load(addend + i));
      });
      a = sum;
    }
    T mean = 0;
    if (x.mean) {
      U sum{};
      for_each_unit(T{}, x.cols, [&](size_t i, auto io) RINGWISE_INLINE { sum += io.load(a + i); });
      mean = lane_sum(sum) / count;
      static_cast<T*>(x.mean)[r] = mean;
    }
    const T rstd = 1 / std::sqrt(square_sum(a, x.cols, mean) / count + static_cast<T>(x.eps));
    static_cast<T*>(x.rstd)[r] = rstd;
    const U center = like(U{}, mean), factor = like(U{}, rstd);
    for_each_unit(T{}, x.cols, [&](size_t i, auto io) RINGWISE_INLINE {
      U value = (io.load(a + i) - center) * factor;
      if (gamma) value *= io.load(gamma + i);
      if (beta) value += io.load(beta + i);
      io.store(out + i, value);
    });
  }
}

// With y = (a - mean) * rstd and g = grad_out * gamma: grad_in = rstd * (g - avg(g) - y * avg(g * y)); without a mean
// there is no middle term.
template <class T>
void norm_grad_rows(const NormGrad& x) {
  using U = UnitOf<T>;
  const T* gamma = static_cast<const T*>(x.gamma);
  T* grad_gamma = static_cast<T*>(x.grad_gamma);
  T* grad_beta = static_cast<T*>(x.grad_beta);
  if (grad_gamma) std::fill_n(grad_gamma, x.cols, T{});
  if (grad_beta) std::fill_n(grad_beta, x.cols, T{});
  for (size_t r = 0; r < x.rows; r++) {
    const T* a = static_cast<const T*>(x.a) + r * x.cols;
    const T* grad = static_cast<const T*>(x.grad_out) + r * x.cols;
    const U mean = like(U{}, x.mean ? static_cast<const T*>(x.mean)[r] : 0);
    const U rstd = like(U{}, static_cast<const T*>(x.rstd)[r]);
    U sum{}, product{};
    for_each_unit(T{}, x.cols, [&](size_t i, auto io) RINGWISE_INLINE {
      const U g = io.load(grad + i), y = (io.load(a + i) - mean) * rstd;
      if (grad_gamma) io.store(grad_gamma + i, io.load(grad_gamma + i) + g * y);
      if (grad_beta) io.store(grad_beta + i, io.load(grad_beta + i) + g);
      const U scaled = gamma ? g * io.load(gamma + i) : g;
      sum += scaled;
      product += scaled * y;
    });
    if (!x.grad_in) continue;
    T* to = static_cast<T*>(x.grad_in) + r * x.cols;
    const U average = like(U{}, x.mean ? lane_sum(sum) / static_cast<T>(x.cols) : 0);
    const U slope = like(U{}, lane_sum(product) / static_cast<T>(x.cols));
    for_each_unit(T{}, x.cols, [&](size_t i, auto io) RINGWISE_INLINE {
      const U g = io.load(grad + i), y = (io.load(a + i) - mean) * rstd;
      const U value = rstd * ((gamma ? g * io.load(gamma + i) : g) - average - y * slope);
      io.store(to + i, x.accumulate ? io.load(to + i) + value : value);
    });
  }
}

void norm(const Norm& x) {
  with_float(x.dtype, [&](auto type) { norm_rows<decltype(type)>(x); });
}

void norm_grad(const NormGrad& x) {
  with_float(x.dtype, [&](auto type) { norm_grad_rows<decltype(type)>(x); });
}

}  // namespace ringwise::tensor::RINGWISE_LEVEL
