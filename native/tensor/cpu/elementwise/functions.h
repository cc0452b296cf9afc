// Functions of one element, under one name for every computing type that has them: Vec (floats, a register at a time),
// double and int64_t. Included only by families/.
namespace ringwise::tensor::RINGWISE_LEVEL {

// Returns `value` in the type of the first argument.
inline Vec like(Vec, double value) { return splat(static_cast<float>(value)); }
template <class T>
inline T like(T, double value) {
  return static_cast<T>(value);
}

inline Vec exp_of(Vec x) { return exp_vec(x); }
inline Vec log_of(Vec x) { return log_vec(x); }
inline Vec tanh_of(Vec x) { return tanh_vec(x); }
inline Vec sqrt_of(Vec x) { return sqrt_vec(x); }
inline Vec abs_of(Vec x) { return from_bits(bits(x) & splat_int(INT32_MAX)); }
inline Vec max_of(Vec a, Vec b) { return max_vec(a, b); }
inline Vec min_of(Vec a, Vec b) { return min_vec(a, b); }
inline Vec erf_of(Vec x) { return erf_vec(x); }

inline double exp_of(double x) { return std::exp(x); }
inline double log_of(double x) { return std::log(x); }
inline double tanh_of(double x) { return std::tanh(x); }
inline double sqrt_of(double x) { return std::sqrt(x); }
inline double abs_of(double x) { return std::fabs(x); }
inline double erf_of(double x) { return std::erf(x); }
inline double max_of(double a, double b) { return (a > b) | (a != a) ? a : b; }
inline double min_of(double a, double b) { return (a < b) | (a != a) ? a : b; }

inline int64_t abs_of(int64_t x) { return x < 0 ? static_cast<int64_t>(0 - static_cast<uint64_t>(x)) : x; }
inline int64_t max_of(int64_t a, int64_t b) { return a > b ? a : b; }
inline int64_t min_of(int64_t a, int64_t b) { return a < b ? a : b; }

// Applies f to one lane after another, for functions that are rarely used.
template <class F>
inline Vec by_lane(Vec x, F f) {
  for (int i = 0; i < kLanes; i++) x[i] = f(x[i]);
  return x;
}
template <class F>
inline double by_lane(double x, F f) {
  return f(x);
}
template <class F>
inline Vec by_lane(Vec x, Vec y, F f) {
  for (int i = 0; i < kLanes; i++) x[i] = f(x[i], y[i]);
  return x;
}
template <class T, class F>
inline T by_lane(T x, T y, F f) {
  return f(x, y);
}
inline Vec pow_of(Vec x, Vec y) {
  for (int i = 0; i < kLanes; i++) x[i] = std::pow(x[i], y[i]);
  return x;
}
inline double pow_of(double x, double y) { return std::pow(x, y); }

// Computes a power by repeated squaring, which wraps around. A negative exponent gives 1, -1 or 0.
inline int64_t pow_of(int64_t x, int64_t y) {
  if (y < 0) return x == 1 ? 1 : x == -1 ? (y % 2 ? -1 : 1) : 0;
  uint64_t result = 1, power = static_cast<uint64_t>(x);
  for (; y > 0; y >>= 1, power *= power) {
    if (y & 1) result *= power;
  }
  return static_cast<int64_t>(result);
}

template <class T>
inline T sigmoid_of(T x) {
  return like(x, 1) / (like(x, 1) + exp_of(-x));
}
// gelu by a tanh is x · gate, with gate = (1 + tanh(u)) / 2 = sigmoid(2u) and u = √(2/π) (x + 0.044715 x³).
template <class T>
inline T gelu_tanh_gate(T x) {
  return sigmoid_of(like(x, 1.5957691216057308) * x * (like(x, 1) + like(x, 0.044715) * x * x));
}
template <class T>
inline T gelu_tanh_slope(T x) {
  const T gate = gelu_tanh_gate(x);
  const T inner = like(x, 1.5957691216057308) * (like(x, 1) + like(x, 3 * 0.044715) * x * x);
  return gate + x * gate * (like(x, 1) - gate) * inner;
}
// The distribution function of the normal distribution, and its density.
template <class T>
inline T normal_cdf(T x) {
  return like(x, 0.5) * (like(x, 1) + erf_of(x * like(x, 0.70710678118654752)));
}
template <class T>
inline T normal_density(T x) {
  return like(x, 0.39894228040143268) * exp_of(like(x, -0.5) * x * x);
}

}  // namespace ringwise::tensor::RINGWISE_LEVEL
