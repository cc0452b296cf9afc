// Helpers that kernels of several families use. Included only by the files of families/.
namespace ringwise::tensor::RINGWISE_LEVEL {

// Calls body(i, io) for the elements [0, count): a register at a time for floats, one at a time for the other types
// (the compiler makes vectors of them).
template <class T, class Body>
RINGWISE_INLINE inline void for_each_element(size_t count, Body body) {
  if constexpr (std::is_same_v<T, float>) {
    for_each_vec(count, body);
  } else {
    struct One {
      static T load(const T* p) { return *p; }
      static void store(T* p, T value) { *p = value; }
    };
    for (size_t i = 0; i < count; i++) body(i, One{});
  }
}

// wrap() makes integers unsigned, so that their arithmetic wraps around; unwrap() makes them signed again.
template <class T>
inline auto wrap(T x) {
  if constexpr (std::is_same_v<T, int64_t>)
    return static_cast<uint64_t>(x);
  else
    return x;
}
template <class T, class U>
inline T unwrap(U x) {
  return static_cast<T>(x);
}

// Returns the computing type of a conversion. Between an integer and a float it is a float, to which integers beyond
// 2^53 (float64) or 2^24 (float32) are rounded.
inline DType converting_type(DType to, DType from) {
  const bool is_wide = to == DType::Float64 || from == DType::Float64;
  const auto is_integer = [](DType dtype) { return dtype >= DType::Int8; };
  if (is_integer(to) && is_integer(from)) return DType::Int64;
  return is_wide ? DType::Float64 : DType::Float32;
}

template <class Use>
inline void with_float(DType dtype, Use use) {
  if (dtype == DType::Float64)
    use(double{});
  else
    use(float{});
}

template <class Use>
inline void with_label(DType dtype, Use use) {
  if (dtype == DType::Int64)
    use(int64_t{});
  else
    use(int32_t{});
}

}  // namespace ringwise::tensor::RINGWISE_LEVEL
