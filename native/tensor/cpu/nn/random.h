// Fills tensors with random numbers, and computes dropout. Only the files of tensor/cpu/families include this file:
// each compiles it for one instruction set, which RINGWISE_LEVEL names. All instruction sets give the same bits.
namespace ringwise::tensor::RINGWISE_LEVEL {

constexpr double kTwoToMinus24 = 1.0 / (1 << 24);

// Draws from [low, high), with 24 random bits each. Rounding to float32 may give `high` itself.
inline void fill_uniform(float* out, size_t count, const Stream& stream, double low, double high) {
  const double scale = (high - low) * kTwoToMinus24;
  for_each_random(stream, count, [&](size_t at, const uint32_t* words, size_t n) {
    double product[kPhiloxWords];
    for (size_t i = 0; i < n; i++) product[i] = static_cast<double>(words[i] >> 8) * scale;
    // Keeps the compiler from fusing the product and the sum into one operation, which would round differently.
    asm volatile("" : : "r"(product) : "memory");
    for (size_t i = 0; i < n; i++) out[at + i] = static_cast<float>(low + product[i]);
  });
}

// Draws from the standard normal distribution by the Box-Muller transform, computed in float64. `words` always holds
// kPhiloxWords numbers; if n is odd, the second normal of the last pair is dropped.
inline void fill_normal(float* out, size_t count, const Stream& stream) {
  for_each_random(stream, count, [&](size_t at, const uint32_t* words, size_t n) {
    for (size_t i = 0; i < n; i += 2) {
      const double radius = std::sqrt(-2 * std::log(((words[i] >> 8) + 1) * kTwoToMinus24));
      const double angle = 2 * 3.14159265358979323846 * (words[i + 1] >> 8) * kTwoToMinus24;
      out[at + i] = static_cast<float>(radius * std::cos(angle));
      if (i + 1 < n) out[at + i + 1] = static_cast<float>(radius * std::sin(angle));
    }
  });
}

// Draws integers from [low, low + range) by multiplying and shifting; range is at most 2^32.
inline void fill_integers(int64_t* out, size_t count, const Stream& stream, int64_t low, uint64_t range) {
  for_each_random(stream, count, [&](size_t at, const uint32_t* words, size_t n) {
    for (size_t i = 0; i < n; i++) out[at + i] = low + static_cast<int64_t>((words[i] * range) >> 32);
  });
}

// Draws integers from [0, 2^63): two words each, without the lowest bit.
inline void fill_bits(int64_t* out, size_t count, const Stream& stream) {
  for_each_random(stream, 2 * count, [&](size_t at, const uint32_t* words, size_t n) {
    for (size_t i = 0; i < n; i += 2)
      out[(at + i) / 2] = static_cast<int64_t>((uint64_t{words[i + 1]} << 32 | words[i]) >> 1);
  });
}

void random(const Random& x) {
  const auto& [dtype, out, count, kind, stream, low, high] = x;
  switch (kind) {
    case RandomKind::Uniform: return fill_uniform(static_cast<float*>(out), count, stream, low, high);
    case RandomKind::Normal: return fill_normal(static_cast<float*>(out), count, stream);
    case RandomKind::Integers:
      return fill_integers(static_cast<int64_t*>(out), count, stream, static_cast<int64_t>(low),
                           static_cast<uint64_t>(high - low));
    case RandomKind::Bits: return fill_bits(static_cast<int64_t*>(out), count, stream);
    case RandomKind::Count: return;  // the number of kinds
  }
}

void dropout(const Dropout& x) {
  with_float(x.dtype, [&](auto type) {
    using T = decltype(type);
    T* to = static_cast<T*>(x.out);
    const T* from = static_cast<const T*>(x.a);
    const uint32_t limit = drop_limit(x.p);
    const T scale = static_cast<T>(1 / (1 - x.p));
    for_each_random(x.stream, x.count, [&](size_t at, const uint32_t* words, size_t n) {
      for (size_t i = 0; i < n; i++) to[at + i] = words[i] < limit ? T{} : from[at + i] * scale;
    });
  });
}

}  // namespace ringwise::tensor::RINGWISE_LEVEL
