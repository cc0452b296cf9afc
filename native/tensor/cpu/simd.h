// One vector register of floats, at the width of the level that is being compiled. Arithmetic, comparison and
// selection are the compiler's own vector operators; what they lack is here. Included only by level.h.
namespace ringwise::tensor::RINGWISE_LEVEL {

// For helpers and lambdas whose arguments must stay in registers.
#define RINGWISE_INLINE __attribute__((always_inline))

constexpr int kLanes = RINGWISE_VECTOR_BYTES / 4;

typedef float Vec __attribute__((vector_size(RINGWISE_VECTOR_BYTES)));
typedef int32_t IntVec __attribute__((vector_size(RINGWISE_VECTOR_BYTES)));
typedef float UnalignedVec __attribute__((vector_size(RINGWISE_VECTOR_BYTES), aligned(4), may_alias));

// Subtracting zero changes no value, not even -0, so the compiler drops it; adding zero would stay.
inline Vec splat(float value) { return value - Vec{}; }
inline IntVec splat_int(int32_t value) { return IntVec{} + value; }
inline Vec load(const float* p) { return *reinterpret_cast<const UnalignedVec*>(p); }
inline void store(float* p, Vec v) { *reinterpret_cast<UnalignedVec*>(p) = v; }
inline IntVec bits(Vec v) { return reinterpret_cast<IntVec>(v); }
inline Vec from_bits(IntVec v) { return reinterpret_cast<Vec>(v); }

// The first `count` (1 … kLanes) floats; memory behind them is not touched, lanes behind them are 0.
inline Vec load_partial(const float* p, size_t count);
inline void store_partial(float* p, Vec v, size_t count);
inline Vec sqrt_vec(Vec v);

#if RINGWISE_VECTOR_BYTES == 64
inline __mmask16 lane_mask(size_t count) { return static_cast<__mmask16>((1u << count) - 1); }
inline Vec load_partial(const float* p, size_t count) { return _mm512_maskz_loadu_ps(lane_mask(count), p); }
inline void store_partial(float* p, Vec v, size_t count) { _mm512_mask_storeu_ps(p, lane_mask(count), v); }
// The masked form, because gcc warns about the undefined pass-through operand inside the plain one.
inline Vec sqrt_vec(Vec v) { return _mm512_mask_sqrt_ps(v, lane_mask(kLanes), v); }
#elif RINGWISE_VECTOR_BYTES == 32
inline __m256i lane_mask(size_t count) {
  const IntVec lane = {0, 1, 2, 3, 4, 5, 6, 7};
  return reinterpret_cast<__m256i>(lane < splat_int(static_cast<int32_t>(count)));
}
inline Vec load_partial(const float* p, size_t count) { return _mm256_maskload_ps(p, lane_mask(count)); }
inline void store_partial(float* p, Vec v, size_t count) { _mm256_maskstore_ps(p, lane_mask(count), v); }
inline Vec sqrt_vec(Vec v) { return _mm256_sqrt_ps(v); }
#else
inline Vec load_partial(const float* p, size_t count) {
  Vec v = {};
  for (size_t i = 0; i < count; i++) v[i] = p[i];
  return v;
}
inline void store_partial(float* p, Vec v, size_t count) {
  for (size_t i = 0; i < count; i++) p[i] = v[i];
}
inline Vec sqrt_vec(Vec v) {
#if defined(__SSE2__)
  return _mm_sqrt_ps(v);
#else
  for (int i = 0; i < kLanes; i++) v[i] = __builtin_sqrtf(v[i]);
  return v;
#endif
}
#endif

// Selections that let NaN through, from either side.
inline Vec max_vec(Vec a, Vec b) { return ((a > b) | (a != a)) ? a : b; }
inline Vec min_vec(Vec a, Vec b) { return ((a < b) | (a != a)) ? a : b; }

// Sum and maximum over the lanes, halving, so that the order is fixed.
inline float sum_lanes(Vec v) {
  float lanes[kLanes];
  __builtin_memcpy(lanes, &v, sizeof v);
  for (int half = kLanes / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; i++) lanes[i] += lanes[i + half];
  }
  return lanes[0];
}
inline float max_lanes(Vec v) {
  float best = v[0];
  for (int i = 1; i < kLanes; i++) best = (v[i] > best || v[i] != v[i]) ? v[i] : best;
  return best;
}

// body(i) for i = 0 … N - 1, each a constant: arrays indexed with it live in registers.
template <int N, class Body>
RINGWISE_INLINE inline void unrolled(Body body) {
  [&]<int... I>(std::integer_sequence<int, I...>) RINGWISE_INLINE {
    (body(std::integral_constant<int, I>{}), ...);
  }(std::make_integer_sequence<int, N>{});
}

// Two ways to touch memory with the same code: a whole vector, or the rest of an array.
struct FullVec {
  static Vec load(const float* p) { return RINGWISE_LEVEL::load(p); }
  static void store(float* p, Vec v) { RINGWISE_LEVEL::store(p, v); }
};
struct PartialVec {
  size_t count;
  Vec load(const float* p) const { return load_partial(p, count); }
  void store(float* p, Vec v) const { store_partial(p, v, count); }
};

// Calls body(i, io) for each vector of [0, count): io loads and stores whole vectors, and only what is there in the
// last one. So an element's result does not depend on where in the array it stands.
template <class Body>
RINGWISE_INLINE inline void for_each_vec(size_t count, Body body) {
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) body(i, FullVec{});
  if (i < count) body(i, PartialVec{count - i});
}

}  // namespace ringwise::tensor::RINGWISE_LEVEL
