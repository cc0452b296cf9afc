// A vector register of floats, of the width of the compiled level. Arithmetic, comparison and selection are the
// compiler's vector operators; this file adds the others. Included only by families/.
namespace ringwise::tensor::RINGWISE_LEVEL {

// For helpers and lambdas whose arguments must stay in registers.
#define RINGWISE_INLINE __attribute__((always_inline))

constexpr int kLanes = RINGWISE_VECTOR_BYTES / 4;

typedef float Vec __attribute__((vector_size(RINGWISE_VECTOR_BYTES)));
typedef int32_t IntVec __attribute__((vector_size(RINGWISE_VECTOR_BYTES)));
typedef float UnalignedVec __attribute__((vector_size(RINGWISE_VECTOR_BYTES), aligned(4), may_alias));

// Subtracting zero changes no value, not even -0, so the compiler removes it; it would not remove the addition of zero.
inline Vec splat(float value) { return value - Vec{}; }
inline IntVec splat_int(int32_t value) { return IntVec{} + value; }
inline Vec load(const float* p) { return *reinterpret_cast<const UnalignedVec*>(p); }
inline void store(float* p, Vec v) { *reinterpret_cast<UnalignedVec*>(p) = v; }
inline IntVec bits(Vec v) { return reinterpret_cast<IntVec>(v); }
inline Vec from_bits(IntVec v) { return reinterpret_cast<Vec>(v); }

// load_partial and store_partial move the first `count` (1 … kLanes) floats and do not touch memory behind them. The
// other lanes of a loaded vector are `rest`.
#if RINGWISE_VECTOR_BYTES == 64
inline __mmask16 lane_mask(size_t count) { return static_cast<__mmask16>((1u << count) - 1); }
inline Vec load_partial(const float* p, size_t count, float rest = 0) {
  return _mm512_mask_loadu_ps(splat(rest), lane_mask(count), p);
}
inline void store_partial(float* p, Vec v, size_t count) { _mm512_mask_storeu_ps(p, lane_mask(count), v); }
// Uses the masked form, because GCC warns about an undefined operand inside the plain one.
inline Vec sqrt_vec(Vec v) { return _mm512_mask_sqrt_ps(v, lane_mask(kLanes), v); }
#elif RINGWISE_VECTOR_BYTES == 32
inline IntVec lane_mask(size_t count) {
  const IntVec lane = {0, 1, 2, 3, 4, 5, 6, 7};
  return lane < splat_int(static_cast<int32_t>(count));
}
inline Vec load_partial(const float* p, size_t count, float rest = 0) {
  const IntVec mask = lane_mask(count);
  return mask ? Vec(_mm256_maskload_ps(p, reinterpret_cast<__m256i>(mask))) : splat(rest);
}
inline void store_partial(float* p, Vec v, size_t count) {
  _mm256_maskstore_ps(p, reinterpret_cast<__m256i>(lane_mask(count)), v);
}
inline Vec sqrt_vec(Vec v) { return _mm256_sqrt_ps(v); }
#else
inline Vec load_partial(const float* p, size_t count, float rest = 0) {
  Vec v = splat(rest);
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

inline Vec load_some(const float* p, size_t count) { return count == kLanes ? load(p) : load_partial(p, count); }
inline void store_some(float* p, Vec v, size_t count) {
  if (count == kLanes)
    store(p, v);
  else
    store_partial(p, v, count);
}

// Return the larger and the smaller; NaN if either operand is NaN.
inline Vec max_vec(Vec a, Vec b) { return ((a > b) | (a != a)) ? a : b; }
inline Vec min_vec(Vec a, Vec b) { return ((a < b) | (a != a)) ? a : b; }

// Returns v with its lanes rotated down by kBy.
template <int kBy, size_t... I>
inline Vec rotated(Vec v, std::index_sequence<I...>) {
  return __builtin_shufflevector(v, v, ((static_cast<int>(I) + kBy) % kLanes)...);
}

// Combines all lanes, always in the same order: halves, then halves of these.
template <class Combine>
RINGWISE_INLINE inline float over_lanes(Vec v, Combine combine) {
  constexpr auto lanes = std::make_index_sequence<kLanes>{};
  if constexpr (kLanes > 8) v = combine(v, rotated<8>(v, lanes));
  if constexpr (kLanes > 4) v = combine(v, rotated<4>(v, lanes));
  v = combine(v, rotated<2>(v, lanes));
  v = combine(v, rotated<1>(v, lanes));
  return v[0];
}

// Calls body(i) for constants i = 0 … N - 1, so that arrays indexed with i stay in registers.
template <int N, class Body>
RINGWISE_INLINE inline void unrolled(Body body) {
  [&]<int... I>(std::integer_sequence<int, I...>)
      RINGWISE_INLINE { (body(std::integral_constant<int, I>{}), ...); }(std::make_integer_sequence<int, N>{});
}

// FullVec and PartialVec let the same code access a whole vector, or the `count` floats at the end of an array.
struct FullVec {
  static Vec load(const float* p, float = 0) { return RINGWISE_LEVEL::load(p); }
  static void store(float* p, Vec v) { RINGWISE_LEVEL::store(p, v); }
};
struct PartialVec {
  size_t count;
  Vec load(const float* p, float rest = 0) const { return load_partial(p, count, rest); }  // `rest` behind the array
  void store(float* p, Vec v) const { store_partial(p, v, count); }
};

// Calls body(i, io) for each vector of [0, count): io loads and stores whole vectors, and only the rest of the array
// for the last one. So an element's result does not depend on its position in the array.
template <class Body>
RINGWISE_INLINE inline void for_each_vec(size_t count, Body body) {
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) body(i, FullVec{});
  if (i < count) body(i, PartialVec{count - i});
}

}  // namespace ringwise::tensor::RINGWISE_LEVEL
