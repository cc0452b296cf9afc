// Elementwise operations over float, double and int64_t: the same expressions as in cpu/elementwise/map.h, on N values
// at a time, so that the switch over operations is taken once for N values.
#pragma once

#include "tensor/cuda/kernels/shared/element.cuh"
#include "tensor/kernels.h"

namespace ringwise::tensor::cuda {

// Integers are computed as unsigned numbers, so that they wrap around.
template <class T>
__device__ inline auto wrap(T x) {
  if constexpr (std::is_same_v<T, int64_t>)
    return static_cast<uint64_t>(x);
  else
    return x;
}

template <class T>
__device__ inline T max_of(T a, T b) {
  return (a > b) | (a != a) ? a : b;
}
template <class T>
__device__ inline T min_of(T a, T b) {
  return (a < b) | (a != a) ? a : b;
}

template <class T>
__device__ inline T pow_of(T x, T y) {
  if constexpr (std::is_same_v<T, int64_t>) {
    // Repeated squaring, which wraps around. A negative exponent gives 1, -1 or 0.
    if (y < 0) return x == 1 ? 1 : x == -1 ? (y % 2 ? -1 : 1) : 0;
    uint64_t result = 1, power = static_cast<uint64_t>(x);
    for (; y > 0; y >>= 1, power *= power) {
      if (y & 1) result *= power;
    }
    return static_cast<T>(result);
  } else {
    return pow(x, y);
  }
}

template <class T>
__device__ inline T sigmoid_of(T x) {
  return T(1) / (T(1) + exp(-x));
}
// gelu by a tanh is x · gate, with gate = (1 + tanh(u)) / 2 = sigmoid(2u) and u = √(2/π) (x + 0.044715 x³).
template <class T>
__device__ inline T gelu_tanh_gate(T x) {
  return sigmoid_of(T(1.5957691216057308) * x * (T(1) + T(0.044715) * x * x));
}
template <class T>
__device__ inline T gelu_tanh_slope(T x) {
  const T gate = gelu_tanh_gate(x);
  return gate + x * gate * (T(1) - gate) * T(1.5957691216057308) * (T(1) + T(3 * 0.044715) * x * x);
}
// The distribution function of the normal distribution, and its density.
template <class T>
__device__ inline T normal_cdf(T x) {
  return T(0.5) * (T(1) + erf(x * T(0.70710678118654752)));
}
template <class T>
__device__ inline T normal_density(T x) {
  return T(0.39894228040143268) * exp(T(-0.5) * x * x);
}

template <class T>
__device__ inline T log_add_exp(T x, T y) {
  if (x == y && isinf(x)) return x;
  return (x > y ? x : y) + log1p(exp(-fabs(x - y)));
}

// Integers divided by 0 give 0. A quotient by -1 is computed without a division, which would overflow.
template <class T>
__device__ inline T fmod_of(T x, T y) {
  if constexpr (std::is_floating_point_v<T>)
    return fmod(x, y);
  else
    return y == 0 || y == -1 ? 0 : x % y;
}
template <class T>
__device__ inline T remainder_of(T x, T y) {
  const T rest = fmod_of(x, y);
  return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
}
template <class T>
__device__ inline T floor_div(T x, T y) {
  if constexpr (std::is_floating_point_v<T>) {
    // Subtracts the remainder before the division: the rounded quotient x / y may be the next larger integer.
    if (y == 0) return x / y;
    const T rest = fmod(x, y);
    const T quotient = (x - rest) / y - T(rest != 0 && (rest < 0) != (y < 0));
    if (quotient == 0) return copysign(T(0), x / y);
    const T whole = floor(quotient);
    return quotient - whole > T(0.5) ? whole + 1 : whole;
  } else {
    if (y == 0) return 0;
    if (y == -1) return static_cast<T>(0 - wrap(x));
    return x / y - T(x % y != 0 && (x < 0) != (y < 0));
  }
}
template <class T>
__device__ inline T gcd_of(T x, T y) {
  uint64_t a = x < 0 ? 0 - wrap(x) : wrap(x), b = y < 0 ? 0 - wrap(y) : wrap(y);
  while (b != 0) {
    const uint64_t rest = a % b;
    a = b;
    b = rest;
  }
  return static_cast<T>(a);
}

template <class T, int N, class F>
__device__ inline void unary(T* out, const T* a, F f) {
#pragma unroll
  for (int k = 0; k < N; k++) out[k] = f(a[k]);
}
template <class T, int N, class F>
__device__ inline void binary(T* out, const T* a, const T* b, F f) {
#pragma unroll
  for (int k = 0; k < N; k++) out[k] = f(a[k], b[k]);
}
template <class T, int N, class F>
__device__ inline void ternary(T* out, const T* a, const T* b, const T* c, F f) {
#pragma unroll
  for (int k = 0; k < N; k++) out[k] = f(a[k], b[k], c[k]);
}

/// Computes the operations that are defined only for floating point.
template <class T, int N>
__device__ inline void apply_float(int op, T* out, const T* a, const T* b) {
  const auto one = [&](auto f) { unary<T, N>(out, a, f); };
  const auto two = [&](auto f) { binary<T, N>(out, a, b, f); };
  switch (static_cast<MapOp>(op)) {
    case MapOp::Exp: return one([](T x) { return exp(x); });
    case MapOp::Log: return one([](T x) { return log(x); });
    case MapOp::Sqrt: return one([](T x) { return sqrt(x); });
    case MapOp::Rsqrt: return one([](T x) { return T(1) / sqrt(x); });
    case MapOp::Sin: return one([](T x) { return sin(x); });
    case MapOp::Cos: return one([](T x) { return cos(x); });
    case MapOp::Tanh: return one([](T x) { return tanh(x); });
    case MapOp::Sigmoid: return one([](T x) { return sigmoid_of(x); });
    case MapOp::Erf: return one([](T x) { return erf(x); });
    case MapOp::Gelu: return one([](T x) { return x * normal_cdf(x); });
    case MapOp::GeluTanh: return one([](T x) { return x * gelu_tanh_gate(x); });
    case MapOp::Silu: return one([](T x) { return x * sigmoid_of(x); });
    case MapOp::Floor: return one([](T x) { return floor(x); });
    case MapOp::Ceil: return one([](T x) { return ceil(x); });
    case MapOp::Round: return one([](T x) { return rint(x); });
    case MapOp::Trunc: return one([](T x) { return trunc(x); });
    case MapOp::Log1p: return one([](T x) { return log1p(x); });
    case MapOp::Expm1: return one([](T x) { return expm1(x); });
    case MapOp::Log2: return one([](T x) { return log2(x); });
    case MapOp::Log10: return one([](T x) { return log10(x); });
    case MapOp::Exp2: return one([](T x) { return exp2(x); });
    case MapOp::Tan: return one([](T x) { return tan(x); });
    case MapOp::Asin: return one([](T x) { return asin(x); });
    case MapOp::Acos: return one([](T x) { return acos(x); });
    case MapOp::Atan: return one([](T x) { return atan(x); });
    case MapOp::Sinh: return one([](T x) { return sinh(x); });
    case MapOp::Cosh: return one([](T x) { return cosh(x); });
    case MapOp::Asinh: return one([](T x) { return asinh(x); });
    case MapOp::Acosh: return one([](T x) { return acosh(x); });
    case MapOp::Atanh: return one([](T x) { return atanh(x); });
    case MapOp::Erfc: return one([](T x) { return erfc(x); });
    case MapOp::Erfinv: return one([](T x) { return erfinv(x); });
    case MapOp::Div: return two([](T x, T y) { return x / y; });
    case MapOp::Atan2: return two([](T x, T y) { return atan2(x, y); });
    case MapOp::Hypot: return two([](T x, T y) { return hypot(x, y); });
    case MapOp::Copysign: return two([](T x, T y) { return copysign(x, y); });
    case MapOp::LogAddExp: return two([](T x, T y) { return log_add_exp(x, y); });
    case MapOp::Xlogy: return two([](T x, T y) { return x == T(0) && y == y ? T(0) : x * log(y); });
    case MapOp::SigmoidGrad: return two([](T g, T y) { return g * y * (T(1) - y); });
    case MapOp::TanhGrad: return two([](T g, T y) { return g * (T(1) - y * y); });
    case MapOp::GeluGrad: return two([](T g, T x) { return g * (normal_cdf(x) + x * normal_density(x)); });
    case MapOp::GeluTanhGrad: return two([](T g, T x) { return g * gelu_tanh_slope(x); });
    case MapOp::SiluGrad:
      return two([](T g, T x) {
        const T s = sigmoid_of(x);
        return g * s * (T(1) + x * (T(1) - s));
      });
    default: return;
  }
}

/// Computes the operations that are defined only for integers.
template <class T, int N>
__device__ inline void apply_integer(int op, T* out, const T* a, const T* b) {
  const auto two = [&](auto f) { binary<T, N>(out, a, b, f); };
  switch (static_cast<MapOp>(op)) {
    case MapOp::BitAnd: return two([](T x, T y) { return x & y; });
    case MapOp::BitOr: return two([](T x, T y) { return x | y; });
    case MapOp::BitXor: return two([](T x, T y) { return x ^ y; });
    case MapOp::ShiftLeft: return two([](T x, T y) { return y < 0 || y > 63 ? T(0) : static_cast<T>(wrap(x) << y); });
    case MapOp::ShiftRight: return two([](T x, T y) { return x >> (y < 0 || y > 63 ? 63 : y); });
    case MapOp::Gcd: return two([](T x, T y) { return gcd_of(x, y); });
    default: return;
  }
}

/// Computes out = op(a, b, c), value by value. `out` may be `a`.
template <class T, int N>
__device__ inline void apply(int op, T* out, const T* a, const T* b, const T* c) {
  const auto one = [&](auto f) { unary<T, N>(out, a, f); };
  const auto two = [&](auto f) { binary<T, N>(out, a, b, f); };
  const auto three = [&](auto f) { ternary<T, N>(out, a, b, c, f); };
  if (op == kIdentity) return one([](T x) { return x; });
  switch (static_cast<MapOp>(op)) {
    case MapOp::Neg: return one([](T x) { return static_cast<T>(-wrap(x)); });
    case MapOp::Abs: return one([](T x) { return x < T(0) ? static_cast<T>(-wrap(x)) : x == T(0) ? T(0) : x; });
    case MapOp::Sign: return one([](T x) { return x > T(0) ? T(1) : x < T(0) ? T(-1) : T(0); });
    case MapOp::Square: return one([](T x) { return static_cast<T>(wrap(x) * wrap(x)); });
    case MapOp::Relu: return one([](T x) { return x < T(0) ? T(0) : x; });
    case MapOp::LogicalNot: return one([](T x) { return T(x == T(0)); });
    case MapOp::Add: return two([](T x, T y) { return static_cast<T>(wrap(x) + wrap(y)); });
    case MapOp::Sub: return two([](T x, T y) { return static_cast<T>(wrap(x) - wrap(y)); });
    case MapOp::Mul: return two([](T x, T y) { return static_cast<T>(wrap(x) * wrap(y)); });
    case MapOp::Pow: return two([](T x, T y) { return pow_of(x, y); });
    case MapOp::Max: return two([](T x, T y) { return max_of(x, y); });
    case MapOp::Min: return two([](T x, T y) { return min_of(x, y); });
    case MapOp::Eq: return two([](T x, T y) { return T(x == y); });
    case MapOp::Ne: return two([](T x, T y) { return T(x != y); });
    case MapOp::Lt: return two([](T x, T y) { return T(x < y); });
    case MapOp::Le: return two([](T x, T y) { return T(x <= y); });
    case MapOp::LogicalAnd: return two([](T x, T y) { return T((x != T(0)) & (y != T(0))); });
    case MapOp::LogicalOr: return two([](T x, T y) { return T((x != T(0)) | (y != T(0))); });
    case MapOp::LogicalXor: return two([](T x, T y) { return T((x != T(0)) ^ (y != T(0))); });
    case MapOp::Remainder: return two([](T x, T y) { return remainder_of(x, y); });
    case MapOp::Fmod: return two([](T x, T y) { return fmod_of(x, y); });
    case MapOp::FloorDiv: return two([](T x, T y) { return floor_div(x, y); });
    case MapOp::ReluGrad: return two([](T g, T y) { return y <= T(0) ? T(0) : g; });
    case MapOp::Where: return three([](T x, T y, T z) { return x != T(0) ? y : z; });
    case MapOp::MulAdd: return three([](T x, T y, T z) { return static_cast<T>(wrap(x) * wrap(y) + wrap(z)); });
    // The result is NaN if x or a bound is.
    case MapOp::Clamp: return three([](T x, T low, T high) { return min_of(max_of(x, low), high); });
    case MapOp::InRange: return three([](T x, T low, T high) { return T((x >= low) & (x <= high)); });
    default:
      if constexpr (std::is_floating_point_v<T>)
        apply_float<T, N>(op, out, a, b);
      else
        apply_integer<T, N>(op, out, a, b);
  }
}

}  // namespace ringwise::tensor::cuda
