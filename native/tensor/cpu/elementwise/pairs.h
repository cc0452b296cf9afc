// Functions of single numbers that the C library lacks: the inverse of the error function, and operations of two
// numbers beyond arithmetic. Included only by families/.
namespace ringwise::tensor::RINGWISE_LEVEL {

// Returns the number whose error function is x: an estimate by S. Winitzki, then steps of Halley's method. Near 1 the
// error is that of erfc, which has more digits there.
template <class T>
T erfinv_of(T argument) {
  constexpr double pi = 3.14159265358979323846;
  const double x = argument, size = std::fabs(x);
  if (!(size < 1)) return static_cast<T>(size == 1 ? x * HUGE_VAL : std::nan(""));
  const double log = std::log1p(-x * x), middle = 2 / (pi * 0.147) + log / 2;
  double y = std::sqrt(-log / 0.147 / (std::sqrt(middle * middle - log / 0.147) + middle));
  for (int step = 0; step < 3; step++) {
    const double error = size < 0.5 ? std::erf(y) - size : 1 - size - std::erfc(y);
    const double change = error * std::sqrt(pi) / 2 * std::exp(y * y);
    y -= change / (1 + y * change);
  }
  return static_cast<T>(std::copysign(y, x));
}

template <class T>
T log_add_exp(T x, T y) {
  if (x == y && std::isinf(x)) return x;
  return (x > y ? x : y) + std::log1p(std::exp(-std::fabs(x - y)));
}
template <class T>
T xlogy_of(T x, T y) {
  return x == 0 && y == y ? T(0) : x * std::log(y);
}

// Integers divided by 0 give 0. A quotient by -1 is computed without a division, which would overflow.
template <class T>
T fmod_of(T x, T y) {
  if constexpr (std::is_floating_point_v<T>)
    return std::fmod(x, y);
  else
    return y == 0 || y == -1 ? 0 : x % y;
}
template <class T>
T remainder_of(T x, T y) {
  const T rest = fmod_of(x, y);
  return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
}
template <class T>
T floor_div(T x, T y) {
  if constexpr (std::is_floating_point_v<T>) {
    // Subtracts the remainder before the division: the rounded quotient x / y may be the next larger integer.
    if (y == 0) return x / y;
    const T rest = std::fmod(x, y);
    const T quotient = (x - rest) / y - T(rest != 0 && (rest < 0) != (y < 0));
    if (quotient == 0) return std::copysign(T(0), x / y);
    const T floor = std::floor(quotient);
    return quotient - floor > T(0.5) ? floor + 1 : floor;
  } else {
    if (y == 0) return 0;
    if (y == -1) return static_cast<T>(0 - static_cast<uint64_t>(x));
    return x / y - T(x % y != 0 && (x < 0) != (y < 0));
  }
}

inline int64_t gcd_of(int64_t x, int64_t y) {
  uint64_t a = static_cast<uint64_t>(abs_of(x)), b = static_cast<uint64_t>(abs_of(y));
  while (b != 0) {
    const uint64_t rest = a % b;
    a = b;
    b = rest;
  }
  return static_cast<int64_t>(a);
}
inline int64_t shift_left(int64_t x, int64_t bits) {
  return bits < 0 || bits > 63 ? 0 : static_cast<int64_t>(static_cast<uint64_t>(x) << bits);
}
inline int64_t shift_right(int64_t x, int64_t bits) { return x >> (bits < 0 || bits > 63 ? 63 : bits); }

}  // namespace ringwise::tensor::RINGWISE_LEVEL
