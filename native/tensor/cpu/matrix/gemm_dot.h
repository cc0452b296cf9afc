// Computes A · Bᵀ when both operands are stored with k running fastest and one of them is thin: every element of C is a
// dot product of two contiguous rows, and nothing is packed. A block of R × S dot products shares its loads.
// Included only by families/.
namespace ringwise::tensor::RINGWISE_LEVEL {

constexpr int kDotRows = kLanes == 16 ? 4 : 3;  // kDotRows × kDotCols accumulators
constexpr int kDotCols = 4;
constexpr size_t kThinRows = 4;   // most rows of A for which this beats packing, with any B
constexpr size_t kThinCols = 32;  // most rows of B for which it does, with any A

// Writes the sum over the lanes of each of four vectors.
inline void sum_lanes_of_four(const Vec* v, float* sums) {
  constexpr auto lanes = std::make_index_sequence<kLanes>{};
  const Vec ab = unpack<1, false>(v[0], v[1], lanes) + unpack<1, true>(v[0], v[1], lanes);
  const Vec cd = unpack<1, false>(v[2], v[3], lanes) + unpack<1, true>(v[2], v[3], lanes);
  const Vec quarters = unpack<2, false>(ab, cd, lanes) + unpack<2, true>(ab, cd, lanes);
  for (int i = 0; i < 4; i++) {
    sums[i] = quarters[i];
    for (int q = 4; q < kLanes; q += 4) sums[i] += quarters[q + i];
  }
}

// Computes c[r * c_step + s] (+)= row r of a · row s of b, for R × S rows of k floats.
template <int R, int S>
void dot_block(float* c, size_t c_step, const float* a, const float* b, size_t k, bool accumulate) {
  Vec sum[R * kDotCols];
  unrolled<R * kDotCols>([&](auto i) RINGWISE_INLINE { sum[i] = Vec{}; });
  for_each_vec(k, [&](size_t p, auto io) RINGWISE_INLINE {
    Vec row[S];
    unrolled<S>([&](auto s) RINGWISE_INLINE { row[s] = io.load(b + s * k + p); });
    unrolled<R>([&](auto r) RINGWISE_INLINE {
      const Vec value = io.load(a + r * k + p);
      unrolled<S>([&](auto s) RINGWISE_INLINE { sum[r * kDotCols + s] += value * row[s]; });
    });
  });
  unrolled<R>([&](auto r) RINGWISE_INLINE {
    float sums[kDotCols];
    sum_lanes_of_four(sum + r * kDotCols, sums);
    for (int s = 0; s < S; s++) c[r * c_step + s] = accumulate ? c[r * c_step + s] + sums[s] : sums[s];
  });
}

using DotBlock = void (*)(float*, size_t, const float*, const float*, size_t, bool);

template <int R, size_t... S>
constexpr std::array<DotBlock, kDotCols> dot_blocks_of(std::index_sequence<S...>) {
  return {&dot_block<R, static_cast<int>(S) + 1>...};
}
template <size_t... R>
constexpr std::array<std::array<DotBlock, kDotCols>, kDotRows> dot_blocks(std::index_sequence<R...>) {
  return {dot_blocks_of<static_cast<int>(R) + 1>(std::make_index_sequence<kDotCols>{})...};
}
// kDotBlocks[R - 1][S - 1]
constexpr auto kDotBlocks = dot_blocks(std::make_index_sequence<kDotRows>{});

// Computes rows [0, m) and columns [0, n) of C, whose rows lie c_step apart, on the calling thread.
inline void multiply_dots_alone(float* c, size_t c_step, const float* a, const float* b, size_t m, size_t n, size_t k,
                                bool accumulate) {
  for (size_t j = 0; j < n; j += kDotCols) {
    const size_t cols = std::min<size_t>(n - j, kDotCols);
    for (size_t i = 0; i < m; i += kDotRows) {
      const size_t rows = std::min<size_t>(m - i, kDotRows);
      kDotBlocks[rows - 1][cols - 1](c + i * c_step + j, c_step, a + i * k, b + j * k, k, accumulate);
    }
  }
}

// Shares the operand that is not thin among threads.
inline void multiply_dots(float* c, const float* a, const float* b, size_t m, size_t n, size_t k, bool accumulate) {
  constexpr size_t kGrainElements = 1 << 18;  // elements of the longer operand that are worth another thread
  const size_t grain = kGrainElements / k + 1;
  if (m > n) {
    parallel_for(m, grain, [&](size_t begin, size_t end) {
      multiply_dots_alone(c + begin * n, n, a + begin * k, b, end - begin, n, k, accumulate);
    });
  } else {
    parallel_for(n, grain, [&](size_t begin, size_t end) {
      multiply_dots_alone(c + begin, n, a, b + begin * k, m, end - begin, k, accumulate);
    });
  }
}

}  // namespace ringwise::tensor::RINGWISE_LEVEL
