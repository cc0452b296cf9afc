// Random numbers by counter: Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel Random Numbers: As Easy as 1, 2, 3",
// SC 2011), many blocks at once. docs/decisions/2026-11-21-random-stream.md assigns words to elements; every level
// gives the same bits. Included only by families/.
namespace ringwise::tensor::RINGWISE_LEVEL {

constexpr size_t kPhiloxBlocks = 16;
constexpr size_t kPhiloxWords = 4 * kPhiloxBlocks;

// Writes the words of kPhiloxBlocks blocks from `first` on.
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

// Writes words [begin, begin + count) of the stream.
inline void random_words(uint32_t* out, const Stream& stream, uint64_t begin, size_t count) {
  alignas(64) uint32_t words[kPhiloxWords];
  for (size_t done = 0; done < count;) {
    const size_t skip = (begin + done) % 4, part = std::min(count - done, kPhiloxWords - skip);
    philox_words(words, stream.seed, stream.offset + (begin + done) / 4);
    std::copy_n(words + skip, part, out + done);
    done += part;
  }
}

// Calls body(i, words, n) for groups of words [i, i + n) of `count`. `words` always has kPhiloxWords words.
template <class Body>
inline void for_each_random(const Stream& stream, size_t count, Body body) {
  alignas(64) uint32_t words[kPhiloxWords];
  for (size_t i = 0; i < count; i += kPhiloxWords) {
    philox_words(words, stream.seed, stream.offset + i / 4);
    body(i, words, std::min(count - i, kPhiloxWords));
  }
}

// Returns the limit for words of dropout with probability p: an element whose word is below it is dropped.
inline uint32_t drop_limit(double p) { return static_cast<uint32_t>(p * 4294967296.0); }

}  // namespace ringwise::tensor::RINGWISE_LEVEL
