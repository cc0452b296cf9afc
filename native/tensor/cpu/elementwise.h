// Unary and binary operations. Float work is done in vectors, with the operation as a function object so that each
// has its own loop; integer loops are left to the compiler. Included only by level.h.
namespace ringwise::tensor::RINGWISE_LEVEL {

template <class Op>
inline void map(float* out, const float* a, size_t count, Op op) {
  for_each_vec(count, [&](size_t i, auto io) RINGWISE_INLINE { io.store(out + i, op(io.load(a + i))); });
}

void unary(UnaryOp op, float* out, const float* a, size_t count) {
  const Vec zero = {};
  switch (op) {
    case UnaryOp::Neg: return map(out, a, count, [](auto x) { return -x; });
    case UnaryOp::Exp: return map(out, a, count, [](auto x) { return exp_vec(x); });
    case UnaryOp::Log: return map(out, a, count, [](auto x) { return log_vec(x); });
    case UnaryOp::Sqrt: return map(out, a, count, [](auto x) { return sqrt_vec(x); });
    case UnaryOp::Square: return map(out, a, count, [](auto x) { return x * x; });
    case UnaryOp::Abs: return map(out, a, count, [](auto x) { return from_bits(bits(x) & splat_int(INT32_MAX)); });
    case UnaryOp::Relu: return map(out, a, count, [=](auto x) { return x < zero ? zero : x; });
    case UnaryOp::Sigmoid: return map(out, a, count, [](auto x) { return sigmoid_vec(x); });
    case UnaryOp::Tanh: return map(out, a, count, [](auto x) { return tanh_vec(x); });
  }
}

void affine(float* out, const float* a, float scale, float shift, size_t count) {
  map(out, a, count, [=](auto x) { return x * splat(scale) + splat(shift); });
}

void axpy(float* out, const float* a, float scale, size_t count) {
  for_each_vec(count, [&](size_t i, auto io) RINGWISE_INLINE {
    io.store(out + i, io.load(out + i) + io.load(a + i) * splat(scale));
  });
}

// The row of a walk: `count` elements, the inputs `a_stride` and `b_stride` apart. Strides 0 and 1 have vector loops.
template <class Op>
inline void zip_row(float* out, const float* a, ptrdiff_t a_stride, const float* b, ptrdiff_t b_stride, size_t count,
                    Op op) {
  if (a_stride == 1 && b_stride == 1) {
    for_each_vec(count, [&](size_t i, auto io) RINGWISE_INLINE { io.store(out + i, op(io.load(a + i), io.load(b + i))); });
  } else if (a_stride == 1 && b_stride == 0) {
    const Vec right = splat(*b);
    for_each_vec(count, [&](size_t i, auto io) RINGWISE_INLINE { io.store(out + i, op(io.load(a + i), right)); });
  } else if (a_stride == 0 && b_stride == 1) {
    const Vec left = splat(*a);
    for_each_vec(count, [&](size_t i, auto io) RINGWISE_INLINE { io.store(out + i, op(left, io.load(b + i))); });
  } else {
    for_each_vec(count, [&](size_t i, auto io) {
      const size_t here = std::min<size_t>(count - i, kLanes);
      float left[kLanes] = {}, right[kLanes] = {};
      for (size_t j = 0; j < here; j++) {
        const ptrdiff_t at = static_cast<ptrdiff_t>(i + j);
        left[j] = a[at * a_stride];
        right[j] = b[at * b_stride];
      }
      io.store(out + i, op(load(left), load(right)));
    });
  }
}

template <class T, class Op>
inline void zip_row(T* out, const T* a, ptrdiff_t a_stride, const T* b, ptrdiff_t b_stride, size_t count, Op op) {
  const ptrdiff_t end = static_cast<ptrdiff_t>(count);
  if (a_stride == 1 && b_stride == 1) {
    for (ptrdiff_t i = 0; i < end; i++) out[i] = op(a[i], b[i]);
  } else {
    for (ptrdiff_t i = 0; i < end; i++) out[i] = op(a[i * a_stride], b[i * b_stride]);
  }
}

template <class T, class Op>
inline void zip(void* out, const void* a, const void* b, const Walk<2>& walk, Op op) {
  const int inner = walk.rank - 1;
  for_each_row(walk, [&](size_t at, const ptrdiff_t* from) {
    zip_row(static_cast<T*>(out) + at, static_cast<const T*>(a) + from[0], walk.strides[0][inner],
            static_cast<const T*>(b) + from[1], walk.strides[1][inner], walk.shape[inner], op);
  });
}

void zip_floats(BinaryOp op, void* out, const void* a, const void* b, const Walk<2>& w) {
  const Vec zero = {}, one = splat(1.0f);
  switch (op) {
    case BinaryOp::Add: return zip<float>(out, a, b, w, [](auto x, auto y) { return x + y; });
    case BinaryOp::Sub: return zip<float>(out, a, b, w, [](auto x, auto y) { return x - y; });
    case BinaryOp::Mul: return zip<float>(out, a, b, w, [](auto x, auto y) { return x * y; });
    case BinaryOp::Div: return zip<float>(out, a, b, w, [](auto x, auto y) { return x / y; });
    case BinaryOp::Max: return zip<float>(out, a, b, w, [](auto x, auto y) { return max_vec(x, y); });
    case BinaryOp::Min: return zip<float>(out, a, b, w, [](auto x, auto y) { return min_vec(x, y); });
    case BinaryOp::Eq: return zip<float>(out, a, b, w, [=](auto x, auto y) { return x == y ? one : zero; });
    case BinaryOp::Lt: return zip<float>(out, a, b, w, [=](auto x, auto y) { return x < y ? one : zero; });
    case BinaryOp::ReluGrad: return zip<float>(out, a, b, w, [=](auto g, auto y) { return y <= zero ? zero : g; });
    case BinaryOp::SigmoidGrad: return zip<float>(out, a, b, w, [=](auto g, auto y) { return g * y * (one - y); });
    case BinaryOp::TanhGrad: return zip<float>(out, a, b, w, [=](auto g, auto y) { return g * (one - y * y); });
  }
}

// Arithmetic wraps around, so it is done in the unsigned type.
template <class T>
void zip_integers(BinaryOp op, void* out, const void* a, const void* b, const Walk<2>& w) {
  using U = std::make_unsigned_t<T>;
  switch (op) {
    case BinaryOp::Add: return zip<U>(out, a, b, w, [](U x, U y) { return x + y; });
    case BinaryOp::Sub: return zip<U>(out, a, b, w, [](U x, U y) { return x - y; });
    case BinaryOp::Mul: return zip<U>(out, a, b, w, [](U x, U y) { return x * y; });
    case BinaryOp::Max: return zip<T>(out, a, b, w, [](T x, T y) { return x > y ? x : y; });
    case BinaryOp::Min: return zip<T>(out, a, b, w, [](T x, T y) { return x < y ? x : y; });
    case BinaryOp::Eq: return zip<T>(out, a, b, w, [](T x, T y) -> T { return x == y; });
    case BinaryOp::Lt: return zip<T>(out, a, b, w, [](T x, T y) -> T { return x < y; });
    default: return;  // defined for float32 only
  }
}

void binary(BinaryOp op, DType dtype, void* out, const void* a, const void* b, const Walk<2>& walk) {
  const Walk<2> simple = simplified(walk);
  switch (dtype) {
    case DType::Float32: return zip_floats(op, out, a, b, simple);
    case DType::Int32: return zip_integers<int32_t>(op, out, a, b, simple);
    case DType::Int64: return zip_integers<int64_t>(op, out, a, b, simple);
    default: return;  // tensors have no other dtype
  }
}

}  // namespace ringwise::tensor::RINGWISE_LEVEL
