// Elementwise operations: each is one expression over a computing type, run on tiles that lie dense in the L1 cache.
// Included only by families/.
namespace ringwise::tensor::RINGWISE_LEVEL {

template <class T>
using TileFunction = void (*)(T* out, const T* a, const T* b, const T* c, size_t count);

template <class T, class Op>
constexpr TileFunction<T> unary(Op) {
  return [](T* out, const T* a, const T*, const T*, size_t count) {
    for_each_element<T>(count, [&](size_t i, auto io) RINGWISE_INLINE { io.store(out + i, Op{}(io.load(a + i))); });
  };
}
template <class T, class Op>
constexpr TileFunction<T> binary(Op) {
  return [](T* out, const T* a, const T* b, const T*, size_t count) {
    for_each_element<T>(
        count, [&](size_t i, auto io) RINGWISE_INLINE { io.store(out + i, Op{}(io.load(a + i), io.load(b + i))); });
  };
}
template <class T, class Op>
constexpr TileFunction<T> ternary(Op) {
  return [](T* out, const T* a, const T* b, const T* c, size_t count) {
    for_each_element<T>(count, [&](size_t i, auto io) RINGWISE_INLINE {
      io.store(out + i, Op{}(io.load(a + i), io.load(b + i), io.load(c + i)));
    });
  };
}

// Returns the function of an operation that is defined for floats alone; null for other operations.
template <class T>
TileFunction<T> float_function(MapOp op) {
  switch (op) {
    case MapOp::Exp: return unary<T>([](auto x) { return exp_of(x); });
    case MapOp::Log: return unary<T>([](auto x) { return log_of(x); });
    case MapOp::Sqrt: return unary<T>([](auto x) { return sqrt_of(x); });
    case MapOp::Rsqrt: return unary<T>([](auto x) { return like(x, 1) / sqrt_of(x); });
    case MapOp::Sin: return unary<T>([](auto x) { return by_lane(x, [](auto v) { return std::sin(v); }); });
    case MapOp::Cos: return unary<T>([](auto x) { return by_lane(x, [](auto v) { return std::cos(v); }); });
    case MapOp::Tanh: return unary<T>([](auto x) { return tanh_of(x); });
    case MapOp::Sigmoid: return unary<T>([](auto x) { return sigmoid_of(x); });
    case MapOp::Erf: return unary<T>([](auto x) { return erf_of(x); });
    case MapOp::Gelu: return unary<T>([](auto x) { return x * normal_cdf(x); });
    case MapOp::GeluTanh: return unary<T>([](auto x) { return x * gelu_tanh_gate(x); });
    case MapOp::Silu: return unary<T>([](auto x) { return x * sigmoid_of(x); });
    case MapOp::Floor: return unary<T>([](auto x) { return by_lane(x, [](auto v) { return std::floor(v); }); });
    case MapOp::Ceil: return unary<T>([](auto x) { return by_lane(x, [](auto v) { return std::ceil(v); }); });
    case MapOp::Round: return unary<T>([](auto x) { return by_lane(x, [](auto v) { return std::nearbyint(v); }); });
    case MapOp::Trunc: return unary<T>([](auto x) { return by_lane(x, [](auto v) { return std::trunc(v); }); });
    case MapOp::Log1p: return unary<T>([](auto x) { return by_lane(x, [](auto v) { return std::log1p(v); }); });
    case MapOp::Expm1: return unary<T>([](auto x) { return by_lane(x, [](auto v) { return std::expm1(v); }); });
    case MapOp::Log2: return unary<T>([](auto x) { return by_lane(x, [](auto v) { return std::log2(v); }); });
    case MapOp::Log10: return unary<T>([](auto x) { return by_lane(x, [](auto v) { return std::log10(v); }); });
    case MapOp::Exp2: return unary<T>([](auto x) { return by_lane(x, [](auto v) { return std::exp2(v); }); });
    case MapOp::Tan: return unary<T>([](auto x) { return by_lane(x, [](auto v) { return std::tan(v); }); });
    case MapOp::Asin: return unary<T>([](auto x) { return by_lane(x, [](auto v) { return std::asin(v); }); });
    case MapOp::Acos: return unary<T>([](auto x) { return by_lane(x, [](auto v) { return std::acos(v); }); });
    case MapOp::Atan: return unary<T>([](auto x) { return by_lane(x, [](auto v) { return std::atan(v); }); });
    case MapOp::Sinh: return unary<T>([](auto x) { return by_lane(x, [](auto v) { return std::sinh(v); }); });
    case MapOp::Cosh: return unary<T>([](auto x) { return by_lane(x, [](auto v) { return std::cosh(v); }); });
    case MapOp::Asinh: return unary<T>([](auto x) { return by_lane(x, [](auto v) { return std::asinh(v); }); });
    case MapOp::Acosh: return unary<T>([](auto x) { return by_lane(x, [](auto v) { return std::acosh(v); }); });
    case MapOp::Atanh: return unary<T>([](auto x) { return by_lane(x, [](auto v) { return std::atanh(v); }); });
    case MapOp::Erfc: return unary<T>([](auto x) { return by_lane(x, [](auto v) { return std::erfc(v); }); });
    case MapOp::Erfinv: return unary<T>([](auto x) { return by_lane(x, [](auto v) { return erfinv_of(v); }); });
    case MapOp::Div: return binary<T>([](auto x, auto y) { return x / y; });
    case MapOp::Atan2:
      return binary<T>([](auto x, auto y) { return by_lane(x, y, [](auto v, auto w) { return std::atan2(v, w); }); });
    case MapOp::Hypot:
      return binary<T>([](auto x, auto y) { return by_lane(x, y, [](auto v, auto w) { return std::hypot(v, w); }); });
    case MapOp::Copysign:
      return binary<T>(
          [](auto x, auto y) { return by_lane(x, y, [](auto v, auto w) { return std::copysign(v, w); }); });
    case MapOp::LogAddExp:
      return binary<T>([](auto x, auto y) { return by_lane(x, y, [](auto v, auto w) { return log_add_exp(v, w); }); });
    case MapOp::Xlogy:
      return binary<T>([](auto x, auto y) { return by_lane(x, y, [](auto v, auto w) { return xlogy_of(v, w); }); });
    case MapOp::SigmoidGrad: return binary<T>([](auto g, auto y) { return g * y * (like(y, 1) - y); });
    case MapOp::TanhGrad: return binary<T>([](auto g, auto y) { return g * (like(y, 1) - y * y); });
    case MapOp::GeluGrad: return binary<T>([](auto g, auto x) { return g * (normal_cdf(x) + x * normal_density(x)); });
    case MapOp::GeluTanhGrad: return binary<T>([](auto g, auto x) { return g * gelu_tanh_slope(x); });
    case MapOp::SiluGrad:
      return binary<T>([](auto g, auto x) {
        const auto s = sigmoid_of(x);
        return g * s * (like(x, 1) + x * (like(x, 1) - s));
      });
    default: return nullptr;
  }
}

// Returns the function of an operation that is defined for all computing types; null for other operations.
template <class T>
TileFunction<T> any_function(MapOp op) {
  constexpr auto one_if = [](auto x, auto condition) { return condition ? like(x, 1) : like(x, 0); };
  using OneIf = decltype(one_if);
  switch (op) {
    case MapOp::Neg: return unary<T>([](auto x) { return unwrap<decltype(x)>(-wrap(x)); });
    case MapOp::Abs: return unary<T>([](auto x) { return abs_of(x); });
    case MapOp::Sign:
      return unary<T>([](auto x) { return x > like(x, 0) ? like(x, 1) : x < like(x, 0) ? like(x, -1) : like(x, 0); });
    case MapOp::Square: return unary<T>([](auto x) { return unwrap<decltype(x)>(wrap(x) * wrap(x)); });
    case MapOp::Relu: return unary<T>([](auto x) { return x < like(x, 0) ? like(x, 0) : x; });
    case MapOp::LogicalNot: return unary<T>([](auto x) { return OneIf{}(x, x == like(x, 0)); });
    case MapOp::Add: return binary<T>([](auto x, auto y) { return unwrap<decltype(x)>(wrap(x) + wrap(y)); });
    case MapOp::Sub: return binary<T>([](auto x, auto y) { return unwrap<decltype(x)>(wrap(x) - wrap(y)); });
    case MapOp::Mul: return binary<T>([](auto x, auto y) { return unwrap<decltype(x)>(wrap(x) * wrap(y)); });
    case MapOp::Pow: return binary<T>([](auto x, auto y) { return pow_of(x, y); });
    case MapOp::Max: return binary<T>([](auto x, auto y) { return max_of(x, y); });
    case MapOp::Min: return binary<T>([](auto x, auto y) { return min_of(x, y); });
    case MapOp::Eq: return binary<T>([](auto x, auto y) { return OneIf{}(x, x == y); });
    case MapOp::Ne: return binary<T>([](auto x, auto y) { return OneIf{}(x, x != y); });
    case MapOp::Lt: return binary<T>([](auto x, auto y) { return OneIf{}(x, x < y); });
    case MapOp::Le: return binary<T>([](auto x, auto y) { return OneIf{}(x, x <= y); });
    case MapOp::LogicalAnd:
      return binary<T>([](auto x, auto y) { return OneIf{}(x, (x != like(x, 0)) & (y != like(x, 0))); });
    case MapOp::LogicalOr:
      return binary<T>([](auto x, auto y) { return OneIf{}(x, (x != like(x, 0)) | (y != like(x, 0))); });
    case MapOp::LogicalXor:
      return binary<T>([](auto x, auto y) { return OneIf{}(x, (x != like(x, 0)) ^ (y != like(x, 0))); });
    case MapOp::Remainder:
      return binary<T>([](auto x, auto y) { return by_lane(x, y, [](auto v, auto w) { return remainder_of(v, w); }); });
    case MapOp::Fmod:
      return binary<T>([](auto x, auto y) { return by_lane(x, y, [](auto v, auto w) { return fmod_of(v, w); }); });
    case MapOp::FloorDiv:
      return binary<T>([](auto x, auto y) { return by_lane(x, y, [](auto v, auto w) { return floor_div(v, w); }); });
    case MapOp::ReluGrad: return binary<T>([](auto g, auto y) { return y <= like(y, 0) ? like(y, 0) : g; });
    case MapOp::Where: return ternary<T>([](auto c, auto x, auto y) { return c != like(c, 0) ? x : y; });
    case MapOp::MulAdd:
      return ternary<T>([](auto x, auto y, auto z) { return unwrap<decltype(x)>(wrap(x) * wrap(y) + wrap(z)); });
    // The result is NaN if x or a bound is.
    case MapOp::Clamp: return ternary<T>([](auto x, auto low, auto high) { return min_of(max_of(x, low), high); });
    case MapOp::InRange:
      return ternary<T>([](auto x, auto low, auto high) { return OneIf{}(x, (x >= low) & (x <= high)); });
    default: return nullptr;
  }
}

// Returns the function of an operation that is defined for integers alone; null for other operations.
inline TileFunction<int64_t> integer_function(MapOp op) {
  using T = int64_t;
  switch (op) {
    case MapOp::BitAnd: return binary<T>([](T x, T y) { return x & y; });
    case MapOp::BitOr: return binary<T>([](T x, T y) { return x | y; });
    case MapOp::BitXor: return binary<T>([](T x, T y) { return x ^ y; });
    case MapOp::ShiftLeft: return binary<T>([](T x, T y) { return shift_left(x, y); });
    case MapOp::ShiftRight: return binary<T>([](T x, T y) { return shift_right(x, y); });
    case MapOp::Gcd: return binary<T>([](T x, T y) { return gcd_of(x, y); });
    default: return nullptr;
  }
}

template <class T>
TileFunction<T> function_of(MapOp op) {
  const TileFunction<T> any = any_function<T>(op);
  if constexpr (std::is_floating_point_v<T>)
    return any ? any : float_function<T>(op);
  else
    return any ? any : integer_function(op);
}

// Computes a simplified walk. Operands that are dense and of type T are used in place, others pass through a buffer.
template <class T>
void map_tiles(TileFunction<T> function, const Walk& walk) {
  const int inner = walk.rank - 1;
  const size_t length = walk.shape[inner];
  const Operand& out = walk.operand[0];
  const Operand& last = walk.operand[walk.operands - 1];
  const ptrdiff_t out_stride = out.strides[inner];
  const bool is_direct = out.dtype == dtype_of<T>() && out_stride == sizeof(T);
  const WriteTile<T> write = writer<T>(out.dtype);
  // The readers of absent operands are made for the last operand, and never used.
  const Operand& second = walk.operands > 2 ? walk.operand[2] : last;
  const Operand& third = walk.operands > 3 ? walk.operand[3] : last;
  RowReader<T> a(walk.operand[1], walk.operand[1].strides[inner]), b(second, second.strides[inner]),
      c(third, third.strides[inner]);
  alignas(64) T buffer[kTile];
  for_each_row(walk, [&](char* const* at) {
    for (size_t i = 0; i < length; i += kTile) {
      const size_t count = std::min(length - i, kTile);
      const T* x = a.tile(at[1], i, count);
      const T* y = walk.operands > 2 ? b.tile(at[2], i, count) : nullptr;
      const T* z = walk.operands > 3 ? c.tile(at[3], i, count) : nullptr;
      char* to = at[0] + static_cast<ptrdiff_t>(i) * out_stride;
      T* result = is_direct ? reinterpret_cast<T*>(to) : buffer;
      function(result, x, y, z, count);
      if (!is_direct) write(to, out_stride, result, count);
    }
  });
}

// Tells whether every operand is one run of elements of the computing type, so that nothing has to be moved or
// converted. Strides are elements here.
template <class T>
bool is_one_run(const Walk& walk) {
  if (walk.rank != 1) return false;
  for (int i = 0; i < walk.operands; i++) {
    if (walk.operand[i].dtype != dtype_of<T>() || walk.operand[i].strides[0] != 1) return false;
  }
  return true;
}

template <class T>
void map_run(TileFunction<T> function, const Walk& walk) {
  const auto data = [&](int i) { return i < walk.operands ? reinterpret_cast<T*>(walk.operand[i].data) : nullptr; };
  T* const out = data(0);
  const T *a = data(1), *b = data(2), *c = data(3);
  parallel_for(walk.shape[0], kGrain, [&](size_t begin, size_t end) {
    function(out + begin, a + begin, b ? b + begin : nullptr, c ? c + begin : nullptr, end - begin);
  });
}

void map(const Map& x) {
  const Walk& walk = x.walk;
  with_compute(x.compute, [&](auto type) {
    using T = decltype(type);
    const TileFunction<T> function = function_of<T>(x.op);
    if (!function) return;  // not defined for this type; the ops do not ask for it
    if (is_one_run<T>(walk))
      map_run<T>(function, walk);
    else
      for_each_part_of(simplified(walk), kGrain, [&](const Walk& part) { map_tiles<T>(function, part); });
  });
}

}  // namespace ringwise::tensor::RINGWISE_LEVEL
