// Transposes a square of kLanes × kLanes floats in registers: unpacks pairs, then pairs of pairs, then groups of 128
// bits, which are called quarters at every vector width. Included only by families/.
namespace ringwise::tensor::RINGWISE_LEVEL {

// Returns the lane of a (or kLanes + the lane of b) that becomes output lane `i` when the lower halves of each quarter
// of a and b (the upper halves if `high`) are interleaved in units of `unit` floats.
constexpr int unpack_index(int i, int unit, bool high) {
  const int quarter = i / 4 * 4, within = i % 4;
  const int from_b = within / unit % 2, position = within / (2 * unit) * unit + within % unit;
  return quarter + position + (high ? 2 : 0) + (from_b ? kLanes : 0);
}

template <int kUnit, bool kHigh, size_t... I>
inline Vec unpack(Vec a, Vec b, std::index_sequence<I...>) {
  return __builtin_shufflevector(a, b, unpack_index(static_cast<int>(I), kUnit, kHigh)...);
}

// Returns the lane of a (or kLanes + the lane of b) that becomes output lane `i` when the even quarters of a (the odd
// ones if `odd`) are followed by those of b.
constexpr int quarter_index(int i, bool odd) {
  constexpr int kHalf = kLanes / 8 > 0 ? kLanes / 8 : 1;  // quarters taken from each
  const int quarter = i / 4;
  return (quarter < kHalf ? 0 : kLanes) + (quarter % kHalf * 2 + (odd ? 1 : 0)) * 4 + i % 4;
}

template <bool kOdd, size_t... I>
inline Vec take_quarters(Vec a, Vec b, std::index_sequence<I...>) {
  return __builtin_shufflevector(a, b, quarter_index(static_cast<int>(I), kOdd)...);
}

// row[i][j] becomes row[j][i].
inline void transpose(Vec (&row)[kLanes]) {
  constexpr auto lanes = std::make_index_sequence<kLanes>{};
  // Within each group of four rows, transpose the 4 × 4 block of every quarter.
  for (int g = 0; g < kLanes; g += 4) {
    const Vec low01 = unpack<1, false>(row[g], row[g + 1], lanes), high01 = unpack<1, true>(row[g], row[g + 1], lanes);
    const Vec low23 = unpack<1, false>(row[g + 2], row[g + 3], lanes),
              high23 = unpack<1, true>(row[g + 2], row[g + 3], lanes);
    row[g] = unpack<2, false>(low01, low23, lanes);
    row[g + 1] = unpack<2, true>(low01, low23, lanes);
    row[g + 2] = unpack<2, false>(high01, high23, lanes);
    row[g + 3] = unpack<2, true>(high01, high23, lanes);
  }
  // Now row g + j holds, in quarter q, column 4q + j of rows g … g + 3: transpose the matrix of quarters.
  if constexpr (kLanes == 8) {
    for (int j = 0; j < 4; j++) {
      const Vec a = row[j], b = row[4 + j];
      row[j] = take_quarters<false>(a, b, lanes);
      row[4 + j] = take_quarters<true>(a, b, lanes);
    }
  } else if constexpr (kLanes == 16) {
    for (int j = 0; j < 4; j++) {
      const Vec a = take_quarters<false>(row[j], row[4 + j], lanes), b = take_quarters<true>(row[j], row[4 + j], lanes);
      const Vec c = take_quarters<false>(row[8 + j], row[12 + j], lanes),
                d = take_quarters<true>(row[8 + j], row[12 + j], lanes);
      row[j] = take_quarters<false>(a, c, lanes);
      row[4 + j] = take_quarters<false>(b, d, lanes);
      row[8 + j] = take_quarters<true>(a, c, lanes);
      row[12 + j] = take_quarters<true>(b, d, lanes);
    }
  }
}

// Writes out[r * out_step + c] = a[r + c * step], in squares that stay in registers. Works through strips of a cache
// line's width, so that a line is fetched once.
inline void transpose_floats(float* out, size_t out_step, const float* a, size_t rows, size_t cols, size_t step) {
  constexpr size_t kLineFloats = 16;
  for (size_t strip = 0; strip < rows; strip += kLineFloats) {
    const size_t strip_end = std::min(rows, strip + kLineFloats);
    for (size_t c = 0; c < cols; c += kLanes) {
      const size_t wide = std::min<size_t>(cols - c, kLanes);
      for (size_t r = strip; r < strip_end; r += kLanes) {
        const size_t high = std::min<size_t>(strip_end - r, kLanes);
        Vec block[kLanes] = {};
        for (size_t i = 0; i < wide; i++) block[i] = load_some(a + (c + i) * step + r, high);
        transpose(block);
        for (size_t i = 0; i < high; i++) store_some(out + (r + i) * out_step + c, block[i], wide);
      }
    }
  }
}

}  // namespace ringwise::tensor::RINGWISE_LEVEL
