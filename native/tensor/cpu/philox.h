// Random numbers by counter: Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel Random Numbers: As Easy as 1, 2, 3",
// SC 2011), many blocks at once. tensor/random.h says which word becomes which element; every level gives the same
// bits. Included only by level.h.
namespace ringwise::tensor::RINGWISE_LEVEL {

constexpr size_t kPhiloxBlocks = 16;
constexpr size_t kPhiloxWords = 4 * kPhiloxBlocks;

// The words of kPhiloxBlocks blocks from `first` on.
inline void philox_words(uint32_t* out, uint64_t seed, uint64_t first) {
  alignas(64) uint32_t c[4][kPhiloxBlocks];
  for (size_t i = 0; i < kPhiloxBlocks; i++) {
    c[0][i] = static_cast<uint32_t>(first + i);
    c[1][i] = static_cast<uint32_t>((first + i) >> 32);
    c[2][i] = c[3][i] = 0;
  }
  uint32_t k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < 10; round++, k0 += 0x9e3779b9u, k1 += 0xbb67ae85u) {
    for (size_t i = 0; i < kPhiloxBlocks; i++) {
      const uint64_t a = uint64_t{0xd2511f53u} * c[0][i], b = uint64_t{0xcd9e8d57u} * c[2][i];
      c[0][i] = static_cast<uint32_t>(b >> 32) ^ c[1][i] ^ k0;
      c[2][i] = static_cast<uint32_t>(a >> 32) ^ c[3][i] ^ k1;
      c[1][i] = static_cast<uint32_t>(b);
      c[3][i] = static_cast<uint32_t>(a);
    }
  }
  for (size_t i = 0; i < kPhiloxBlocks; i++) {
    for (size_t w = 0; w < 4; w++) out[4 * i + w] = c[w][i];
  }
}

// Words [begin, begin + count) of the stream.
inline void random_words(uint32_t* out, const Stream& stream, uint64_t begin, size_t count) {
  alignas(64) uint32_t words[kPhiloxWords];
  for (size_t done = 0; done < count;) {
    const size_t skip = (begin + done) % 4, part = std::min(count - done, kPhiloxWords - skip);
    philox_words(words, stream.seed, stream.offset + (begin + done) / 4);
    std::copy_n(words + skip, part, out + done);
    done += part;
  }
}

// body(i, words, n): elements i … i + n of `count`, with as many words, and some more.
template <class Body>
inline void for_each_random(const Stream& stream, size_t count, Body body) {
  alignas(64) uint32_t words[kPhiloxWords];
  for (size_t i = 0; i < count; i += kPhiloxWords) {
    philox_words(words, stream.seed, stream.offset + i / 4);
    body(i, words, std::min(count - i, kPhiloxWords));
  }
}

constexpr double kUnit24 = 1.0 / (1 << 24);

inline void fill_uniform(float* out, size_t count, const Stream& stream, double low, double high) {
  const double scale = (high - low) * kUnit24;
  for_each_random(stream, count, [&](size_t at, const uint32_t* words, size_t n) {
    double product[kPhiloxWords];
    for (size_t i = 0; i < n; i++) product[i] = static_cast<double>(words[i] >> 8) * scale;
    // Product and sum are rounded one after the other at every level: no fused multiply-add.
    asm volatile("" : : "r"(product) : "memory");
    for (size_t i = 0; i < n; i++) out[at + i] = static_cast<float>(low + product[i]);
  });
}

// Box and Muller, in float64.
inline void fill_normal(float* out, size_t count, const Stream& stream) {
  for_each_random(stream, count, [&](size_t at, const uint32_t* words, size_t n) {
    for (size_t i = 0; i < n; i += 2) {
      const double radius = std::sqrt(-2 * std::log(((words[i] >> 8) + 1) * kUnit24));
      const double angle = 2 * 3.14159265358979323846 * (words[i + 1] >> 8) * kUnit24;
      out[at + i] = static_cast<float>(radius * std::cos(angle));
      if (i + 1 < n) out[at + i + 1] = static_cast<float>(radius * std::sin(angle));
    }
  });
}

inline void fill_integers(int64_t* out, size_t count, const Stream& stream, int64_t low, uint64_t range) {
  for_each_random(stream, count, [&](size_t at, const uint32_t* words, size_t n) {
    for (size_t i = 0; i < n; i++) out[at + i] = low + static_cast<int64_t>((words[i] * range) >> 32);
  });
}

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
    case RandomKind::Count: return;
  }
}

// Words below this are dropped.
inline uint32_t drop_limit(double p) { return static_cast<uint32_t>(p * 4294967296.0); }

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
