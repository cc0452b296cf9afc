// Sums and maxima over the middle of [outer, size, inner]. Included only by level.h.
//
// Float sums are taken in short blocks whose totals are added in float64, so that long sums keep their digits. The
// order of additions depends on the sizes alone.
namespace ringwise::tensor::RINGWISE_LEVEL {

constexpr size_t kSumBlock = 8;  // vectors that are added in float32

// Float64 totals of every lane of a Vec.
class WideSum {
 public:
  void add(Vec v) {
    HalfVec half[2];
    __builtin_memcpy(half, &v, sizeof v);
    low_ += __builtin_convertvector(half[0], DoubleVec);
    high_ += __builtin_convertvector(half[1], DoubleVec);
  }
  Vec rounded() const {
    const HalfVec half[2] = {__builtin_convertvector(low_, HalfVec), __builtin_convertvector(high_, HalfVec)};
    Vec v;
    __builtin_memcpy(&v, half, sizeof v);
    return v;
  }
  float total() const {
    const DoubleVec both = low_ + high_;
    double sum = 0;
    for (int i = 0; i < kLanes / 2; i++) sum += both[i];
    return static_cast<float>(sum);
  }

 private:
  typedef float HalfVec __attribute__((vector_size(RINGWISE_VECTOR_BYTES / 2)));
  typedef double DoubleVec __attribute__((vector_size(RINGWISE_VECTOR_BYTES)));
  DoubleVec low_ = {}, high_ = {};
};

// Sum of a contiguous run.
inline float sum_run(const float* a, size_t count) {
  constexpr size_t kBlock = kSumBlock * kLanes;
  WideSum total;
  size_t i = 0;
  for (; i + kBlock <= count; i += kBlock) {
    Vec even = {}, odd = {};
    for (size_t j = 0; j < kBlock; j += 2 * kLanes) {
      even += load(a + i + j);
      odd += load(a + i + j + kLanes);
    }
    total.add(even + odd);
  }
  for_each_vec(count - i, [&](size_t j, auto io) RINGWISE_INLINE { total.add(io.load(a + i + j)); });
  return total.total();
}

inline float max_run(const float* a, size_t count) {
  constexpr float kLeast = -std::numeric_limits<float>::infinity();
  Vec best = splat(kLeast);
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) best = max_vec(best, load(a + i));
  if (i < count) best = max_vec(best, load_partial(a + i, count - i, kLeast));
  return over_lanes(best, [](auto x, auto y) RINGWISE_INLINE { return max_vec(x, y); });
}

// out[i] = sum over s of a[s * inner + i].
inline void sum_columns(float* out, const float* a, size_t size, size_t inner) {
  for_each_vec(inner, [&](size_t i, auto io) RINGWISE_INLINE {
    WideSum total;
    for (size_t begin = 0; begin < size; begin += kSumBlock) {
      const size_t end = std::min(size, begin + kSumBlock);
      Vec block = {};
      for (size_t s = begin; s < end; s++) block += io.load(a + s * inner + i);
      total.add(block);
    }
    io.store(out + i, total.rounded());
  });
}

inline void max_columns(float* out, const float* a, size_t size, size_t inner) {
  for_each_vec(inner, [&](size_t i, auto io) RINGWISE_INLINE {
    Vec best = splat(-std::numeric_limits<float>::infinity());
    for (size_t s = 0; s < size; s++) best = max_vec(best, io.load(a + s * inner + i));
    io.store(out + i, best);
  });
}

void reduce_floats(ReduceOp op, float* out, const float* a, size_t outer, size_t size, size_t inner) {
  const bool is_sum = op == ReduceOp::Sum;
  for (size_t o = 0; o < outer; o++) {
    const float* from = a + o * size * inner;
    if (inner == 1) out[o] = is_sum ? sum_run(from, size) : max_run(from, size);
    else if (is_sum) sum_columns(out + o * inner, from, size, inner);
    else max_columns(out + o * inner, from, size, inner);
  }
}

// Sums wrap around.
template <class T>
void reduce_integers(ReduceOp op, T* out, const T* a, size_t outer, size_t size, size_t inner) {
  using U = std::make_unsigned_t<T>;
  for (size_t o = 0; o < outer; o++) {
    for (size_t i = 0; i < inner; i++) {
      T result = op == ReduceOp::Sum ? 0 : std::numeric_limits<T>::min();
      for (size_t s = 0; s < size; s++) {
        const T value = a[(o * size + s) * inner + i];
        result = op == ReduceOp::Sum ? static_cast<T>(static_cast<U>(result) + static_cast<U>(value))
                                      : std::max(result, value);
      }
      out[o * inner + i] = result;
    }
  }
}

void reduce(ReduceOp op, DType dtype, void* out, const void* a, size_t outer, size_t size, size_t inner) {
  switch (dtype) {
    case DType::Float32:
      return reduce_floats(op, static_cast<float*>(out), static_cast<const float*>(a), outer, size, inner);
    case DType::Int32:
      return reduce_integers(op, static_cast<int32_t*>(out), static_cast<const int32_t*>(a), outer, size, inner);
    case DType::Int64:
      return reduce_integers(op, static_cast<int64_t*>(out), static_cast<const int64_t*>(a), outer, size, inner);
    default: return;
  }
}

template <class T>
void argmax_of(int32_t* out, const T* a, size_t outer, size_t size, size_t inner) {
  for (size_t o = 0; o < outer; o++) {
    for (size_t i = 0; i < inner; i++) {
      const T* column = a + o * size * inner + i;
      size_t best = 0;
      for (size_t s = 1; s < size && column[best * inner] == column[best * inner]; s++) {
        const T value = column[s * inner];
        if (value > column[best * inner] || value != value) best = s;
      }
      out[o * inner + i] = static_cast<int32_t>(best);
    }
  }
}

void argmax(DType dtype, int32_t* out, const void* a, size_t outer, size_t size, size_t inner) {
  switch (dtype) {
    case DType::Float32: return argmax_of(out, static_cast<const float*>(a), outer, size, inner);
    case DType::Int32: return argmax_of(out, static_cast<const int32_t*>(a), outer, size, inner);
    case DType::Int64: return argmax_of(out, static_cast<const int64_t*>(a), outer, size, inner);
    default: return;  // tensors have no other dtype
  }
}

}  // namespace ringwise::tensor::RINGWISE_LEVEL
