// The grid kernels of one instruction set; included by level_<name>.cc behind level.h. No include guard, no includes.
//
// Vectorized loops process blocks of elements as if all were ordinary numbers. Elements of exponent 0 (zeros) are
// corrected afterwards. A block with infinities or NaN, which have the largest exponent, is processed element by
// element.

namespace ringwise::coll::RINGWISE_LEVEL {

// The formats. Upper words count steps of 2^(e - kUpperBits) for an element with the exponent e (without kBias), lower
// words steps that are finer by 2^kLowerBits. kSpecial is the exponent of infinities and NaN.
struct Narrow {  // float32, and halves widened to it
  using Value = float;
  using Bits = uint32_t;
  using Exponent = uint8_t;
  static constexpr int kBias = 127, kSpecial = 255, kFraction = 23, kUpperBits = 42, kLowerBits = 0;
};
struct Wide {
  using Value = double;
  using Bits = uint64_t;
  using Exponent = uint16_t;
  static constexpr int kBias = 1023, kSpecial = 2047, kFraction = 52, kUpperBits = 41, kLowerBits = 42;
};

// (x + kShift) - kShift rounds x, below 2^51, to the nearest integer, ties to even; the sum's bits count up with it.
constexpr double kShift = 0x1.8p52;
// Added to the word of a special element for each +infinity, -infinity and NaN. A word counts up to 2^20 of each.
constexpr int64_t kPositive = 1, kNegative = int64_t{1} << 21, kNaN = int64_t{1} << 42;

inline double power_of_2(int32_t power) { return std::bit_cast<double>(static_cast<uint64_t>(power + 1023) << 52); }

constexpr size_t kGridBlock = kPiece;  // elements

/// The powers of 2 by which the elements of a block are multiplied: one factor, or two where the power exceeds the
/// range of a double.
template <class F>
struct Scales {
  double first[kGridBlock];
  double second[F::kLowerBits > 0 ? kGridBlock : 1];

  /// Sets the factors to 2^(offset + sign × exponent).
  Scales(const typename F::Exponent* exponents, int32_t offset, int32_t sign, size_t count) {
    for (size_t i = 0; i < count; ++i) {
      const int32_t power = offset + sign * exponents[i];
      if constexpr (F::kLowerBits > 0) {
        const int32_t half = power >> 1;
        first[i] = power_of_2(half);
        second[i] = power_of_2(power - half);
      } else {
        first[i] = power_of_2(power);
      }
    }
  }
  double scale(double value, size_t i) const {
    if constexpr (F::kLowerBits > 0)
      return value * first[i] * second[i];
    else
      return value * first[i];
  }
};

template <class E>
bool has(const E* exponents, E exponent, size_t count) {
  E found = 0;
  for (size_t i = 0; i < count; ++i) found |= static_cast<E>(exponents[i] == exponent);
  return found != 0;
}

/// Raises the exponents to those of `input`. Subnormal numbers have exponent 1, only zeros have 0.
template <class F>
void raise(const typename F::Value* input, typename F::Exponent* exponents, size_t count) {
  using Bits = typename F::Bits;
  for (size_t i = 0; i < count; ++i) {
    const Bits magnitude = std::bit_cast<Bits>(input[i]) & (~Bits{0} >> 1);
    const Bits exponent = std::max<Bits>(magnitude >> F::kFraction, magnitude != 0);
    exponents[i] = std::max(exponents[i], static_cast<typename F::Exponent>(exponent));
  }
}

/// Returns the count that `value` adds to the word of a special element (infinite or NaN).
template <class T>
int64_t code_of(T value) {
  if (value != value) return kNaN;
  const T infinity = std::numeric_limits<T>::infinity();
  return value == infinity ? kPositive : (value == -infinity ? kNegative : 0);
}

/// Returns the integer to which a double below 2^51 was rounded when it was added to kShift; `shifted` is that sum.
inline int64_t integer_of(double shifted) { return std::bit_cast<int64_t>(shifted) - std::bit_cast<int64_t>(kShift); }

template <class F>
void add(const typename F::Value* input, const typename F::Exponent* exponents, int64_t* upper, int64_t* lower,
         size_t count) {
  using Bits = typename F::Bits;
  const Scales<F> scales(exponents, F::kUpperBits + F::kBias, -1, count);
  const bool is_special = has<typename F::Exponent>(exponents, F::kSpecial, count);
  const auto add_one = [&](size_t i) {
    const double scaled = scales.scale(static_cast<double>(input[i]), i);
    const double shifted = scaled + kShift;
    upper[i] += integer_of(shifted);
    if constexpr (F::kLowerBits > 0) {
      lower[i] += integer_of((scaled - (shifted - kShift)) * power_of_2(F::kLowerBits) + kShift);
    }
  };
  if (is_special) {
    for (size_t i = 0; i < count; ++i) {
      if (exponents[i] == F::kSpecial)
        upper[i] += code_of(input[i]);
      else
        add_one(i);
    }
  } else {
    RINGWISE_SAME_INDEX
    for (size_t i = 0; i < count; ++i) add_one(i);
  }
  if (!has<typename F::Exponent>(exponents, 0, count)) return;
  // All addends of such an element are zeros. Its word counts the negative ones, because a sum of only −0 is −0.
  for (size_t i = 0; i < count; ++i) {
    const Bits sign = std::bit_cast<Bits>(input[i]) >> (8 * sizeof(Bits) - 1);
    if (exponents[i] == 0) upper[i] += static_cast<int64_t>(sign);
  }
}

/// Returns a word as a double that rounds to any shorter type as the word itself does (round to odd): the bits that do
/// not fit are cut off, and the last bit is set if any of them was 1.
inline double to_odd(int64_t word) {
  constexpr int64_t kExact = int64_t{1} << 52, kCut = 0x7ff;
  const int64_t is_long =
      -static_cast<int64_t>(static_cast<uint64_t>(word + kExact) >= static_cast<uint64_t>(2 * kExact));
  const int64_t is_cut = -static_cast<int64_t>((word & kCut) != 0);
  const int64_t is_odd = is_long & is_cut;
  return static_cast<double>((word & ~(kCut & is_odd)) | (0x800 & is_odd));
}

/// Returns the value of an upper and a lower word, in units of the lower word, rounded once.
inline double sum_of(int64_t upper, int64_t lower) {
  const int64_t rest = lower & ((int64_t{1} << 42) - 1);  // the rest carries into the upper word
  const int64_t whole = upper + (lower >> 42);
  // Both addends are exact doubles: the upper word without its lowest 11 bits, and these bits with `rest`.
  return static_cast<double>(whole >> 11) * 0x1p53 + static_cast<double>(((whole & 0x7ff) << 42) | rest);
}

inline double special_of(int64_t word) {
  const int64_t positives = word & (kNegative - 1);
  const int64_t negatives = (word >> 21) & (kNegative - 1);
  if (word >= kNaN || (positives > 0 && negatives > 0)) return std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  return positives > 0 ? infinity : -infinity;
}

/// Computes the sums, divided and scaled, as doubles. The caller rounds `results` to the element type.
template <class F>
void finish(const int64_t* upper, const int64_t* lower, const typename F::Exponent* exponents, int64_t addends,
            double divisor, double* results, size_t count) {
  const Scales<F> scales(exponents, -(F::kBias + F::kUpperBits + F::kLowerBits), 1, count);
  RINGWISE_SAME_INDEX
  for (size_t i = 0; i < count; ++i) {
    if constexpr (F::kLowerBits > 0)
      results[i] = sum_of(upper[i], lower[i]);
    else
      results[i] = to_odd(upper[i]);
  }
  if (divisor != 1) {
    for (size_t i = 0; i < count; ++i) results[i] /= divisor;
  }
  for (size_t i = 0; i < count; ++i) results[i] = scales.scale(results[i], i);
  if (has<typename F::Exponent>(exponents, 0, count)) {
    for (size_t i = 0; i < count; ++i) {
      if (exponents[i] == 0) results[i] = addends > 0 && upper[i] == addends ? -0.0 : 0.0;
    }
  }
  if (has<typename F::Exponent>(exponents, F::kSpecial, count)) {
    for (size_t i = 0; i < count; ++i) {
      if (exponents[i] == F::kSpecial) results[i] = special_of(upper[i]);
    }
  }
}

/// Returns a float that rounds to a 16-bit float as `value` does (round to odd).
inline float round_to_odd(double value) {
  const float nearest = static_cast<float>(value);
  const bool is_exact = (static_cast<double>(nearest) == value) | (value != value);
  uint32_t bits = std::bit_cast<uint32_t>(nearest);
  bits -= std::fabs(static_cast<double>(nearest)) > std::fabs(value) ? 1 : 0;
  return is_exact ? nearest : std::bit_cast<float>(bits | 1u);
}

/// Returns what is stored as an element of type T.
template <class T>
auto rounded(double value) {
  if constexpr (std::is_floating_point_v<T>)
    return static_cast<T>(value);
  else
    return round_to_odd(value);
}

/// Calls call(T{}, F{}) with the element type of `dtype` and its format.
template <class Call>
void with_format(DType dtype, Call&& call) {
  with_type(dtype, [&]<class T>(T value) {
    if constexpr (std::is_same_v<T, double>)
      call(value, Wide{});
    else if constexpr (is_float<T>)
      call(value, Narrow{});
  });
}

/// Calls call(start, values, count) with blocks of `input`, as floats or doubles.
template <class T, class Call>
void each_block(const std::byte* input, size_t count, Call&& call) {
  const auto* elements = reinterpret_cast<const T*>(input);
  [[maybe_unused]] float values[kGridBlock];
  for (size_t start = 0; start < count; start += kGridBlock) {
    const size_t block = std::min(kGridBlock, count - start);
    if constexpr (std::is_floating_point_v<T>) {
      call(start, elements + start, block);
    } else {
      widen(std::is_same_v<T, Half> ? DType::Float16 : DType::BFloat16, reinterpret_cast<std::byte*>(values),
            reinterpret_cast<const std::byte*>(elements + start), block);
      call(start, static_cast<const float*>(values), block);
    }
  }
}

void grid_raise(DType dtype, const std::byte* input, void* exponents, size_t count) {
  with_format(dtype, [&]<class T, class F>(T, F) {
    auto* own = static_cast<typename F::Exponent*>(exponents);
    each_block<T>(input, count,
                  [&](size_t start, const auto* values, size_t piece) { raise<F>(values, own + start, piece); });
  });
}

void grid_add(DType dtype, const std::byte* input, const void* exponents, int64_t* words, size_t count) {
  with_format(dtype, [&]<class T, class F>(T, F) {
    const auto* own = static_cast<const typename F::Exponent*>(exponents);
    each_block<T>(input, count, [&](size_t start, const auto* values, size_t piece) {
      add<F>(values, own + start, words + start, words + count + start, piece);
    });
  });
}

void grid_finish(DType dtype, const int64_t* words, const void* exponents, int64_t addends, double divisor,
                 std::byte* output, size_t count) {
  with_format(dtype, [&]<class T, class F>(T, F) {
    const auto* own = static_cast<const typename F::Exponent*>(exponents);
    auto* elements = reinterpret_cast<T*>(output);
    double results[kGridBlock];
    for (size_t start = 0; start < count; start += kGridBlock) {
      const size_t piece = std::min(kGridBlock, count - start);
      finish<F>(words + start, words + count + start, own + start, addends, divisor, results, piece);
      store_each(elements + start, piece, [&](size_t i) { return rounded<T>(results[i]); });
    }
  });
}

// Most sums need no words, because all addends of an element are on its grid: the last bit of the smallest one is worth
// at least a step of the grid. Then the sum of two addends in their own type has the right bits, and doubles hold the
// sum of more float32. Where an addend has to be rounded, (x + shift) - shift does it, with a shift whose last bit is
// worth a step. Sums of up to 512 addends stay below 2^52 steps, so doubles add them exactly; for float64 there are two
// such sums, of upper and of lower words.

/// Up to this many addends, doubles hold the sums of all words.
constexpr int kMostExactAddends = 512;
/// Exponents of float64 between which no shift and no sum is out of range.
constexpr uint64_t kLeastExponent = 128, kMostExponent = 1900;

/// One block of a sum. `load(source)` returns the block's addends of a source, until its next call.
template <class F>
struct GridBlock {
  using Value = typename F::Value;
  using Bits = typename F::Bits;
  using Signed = std::make_signed_t<Bits>;
  static constexpr Bits kMagnitude = ~Bits{0} >> 1;
  static constexpr Bits kInfinity = static_cast<Bits>(F::kSpecial) << F::kFraction;
  /// Magnitudes, as bits, whose difference is below this have their last bits on the grid of the larger one.
  static constexpr Signed kOnGrid = static_cast<Signed>(F::kUpperBits + F::kLowerBits - F::kFraction) << F::kFraction;

  size_t count;
  Bits magnitudes[kGridBlock];  // the largest magnitude of each element, as bits
  double results[kGridBlock];

  struct Extent {
    Bits largest = 0;   // magnitude
    Signed spread = 0;  // the largest difference between the magnitudes of an element; zeros do not count

    bool is_finite() const { return largest < kInfinity; }
    bool is_on_grid() const { return is_finite() && spread < kOnGrid; }
  };

  /// Returns the magnitude, as bits, minus 1: zeros come last.
  static Bits nonzero(Bits bits) { return (bits & kMagnitude) - 1; }

  static Extent extent_of_two(const Value* a, const Value* b, size_t count) {
    Extent extent;
    for (size_t i = 0; i < count; ++i) {
      const Bits x = std::bit_cast<Bits>(a[i]), y = std::bit_cast<Bits>(b[i]);
      const Bits largest = std::max(x & kMagnitude, y & kMagnitude);
      extent.largest = std::max(extent.largest, largest);
      extent.spread = std::max(extent.spread, static_cast<Signed>(largest - std::min(nonzero(x), nonzero(y))));
    }
    return extent;
  }

  /// Sets `magnitudes`.
  template <class Load>
  Extent extent_of(Load&& load, int size) {
    Bits least[kGridBlock];
    const Value* first = load(0);
    for (size_t i = 0; i < count; ++i) {
      magnitudes[i] = std::bit_cast<Bits>(first[i]) & kMagnitude;
      least[i] = magnitudes[i] - 1;
    }
    for (int source = 1; source < size; ++source) {
      const Value* values = load(source);
      for (size_t i = 0; i < count; ++i) {
        const Bits bits = std::bit_cast<Bits>(values[i]);
        magnitudes[i] = std::max(magnitudes[i], bits & kMagnitude);
        least[i] = std::min(least[i], nonzero(bits));
      }
    }
    Extent extent;
    for (size_t i = 0; i < count; ++i) {
      extent.largest = std::max(extent.largest, magnitudes[i]);
      extent.spread = std::max(extent.spread, static_cast<Signed>(magnitudes[i] - least[i]));
    }
    return extent;
  }

  /// Returns whether the shifts of all elements are in range.
  bool can_shift() const {
    Bits is_out = 0;
    if constexpr (F::kLowerBits > 0) {
      constexpr Bits kLeast = kLeastExponent << F::kFraction, kMost = kMostExponent << F::kFraction;
      for (size_t i = 0; i < count; ++i) {
        is_out |= static_cast<Bits>((magnitudes[i] != 0) & (magnitudes[i] - kLeast > kMost - kLeast));
      }
    }
    return is_out == 0;
  }

  /// Adds addends that are on the grid. A sum of only −0 is −0.
  template <class Load>
  void add(Load&& load, int size) {
    const Value* first = load(0);
    for (size_t i = 0; i < count; ++i) results[i] = first[i];
    for (int source = 1; source < size; ++source) {
      const Value* values = load(source);
      for (size_t i = 0; i < count; ++i) results[i] += values[i];
    }
  }

  /// Returns a number whose last bit is worth 2^power, for the element's exponent with the bias of a double.
  static double shift_of(uint64_t exponent, int power) {
    return std::bit_cast<double>((exponent + static_cast<uint64_t>(52 + power)) << 52 | uint64_t{1} << 51);
  }

  /// Adds addends that it rounds to the grid.
  template <class Load>
  void add_rounded(Load&& load, int size) {
    double shifts[kGridBlock];
    [[maybe_unused]] double lower[kGridBlock], fine[kGridBlock];
    Bits common[kGridBlock];  // bits that all addends have
    for (size_t i = 0; i < count; ++i) {
      const uint64_t exponent = magnitudes[i] >> F::kFraction;
      if constexpr (F::kLowerBits > 0) {
        const uint64_t biased = std::max(exponent, kLeastExponent);
        shifts[i] = shift_of(biased, -F::kUpperBits);
        fine[i] = shift_of(biased, -F::kUpperBits - F::kLowerBits);
        lower[i] = 0;
      } else {
        shifts[i] = shift_of(std::max<uint64_t>(exponent, 1) + 1023 - F::kBias, -F::kUpperBits);
      }
      results[i] = 0;
      common[i] = ~Bits{0};
    }
    for (int source = 0; source < size; ++source) {
      const Value* values = load(source);
      for (size_t i = 0; i < count; ++i) {
        const double value = values[i];
        const double whole = (value + shifts[i]) - shifts[i];
        results[i] += whole;
        if constexpr (F::kLowerBits > 0) lower[i] += ((value - whole) + fine[i]) - fine[i];
        common[i] &= std::bit_cast<Bits>(values[i]);
      }
    }
    for (size_t i = 0; i < count; ++i) {
      if constexpr (F::kLowerBits > 0) results[i] += lower[i];
      // The shifts make +0 of −0.
      const bool is_negative_zero = (magnitudes[i] == 0) & (common[i] > kMagnitude);
      results[i] = is_negative_zero ? -0.0 : results[i];
    }
  }

  /// Adds any addends, with words.
  template <class Load>
  void add_words(Load&& load, int size, double divisor) {
    typename F::Exponent exponents[kGridBlock] = {};
    int64_t upper[kGridBlock] = {}, lower[kGridBlock] = {};
    for (int source = 0; source < size; ++source) raise<F>(load(source), exponents, count);
    for (int source = 0; source < size; ++source) RINGWISE_LEVEL::add<F>(load(source), exponents, upper, lower, count);
    finish<F>(upper, lower, exponents, size, divisor, results, count);
  }

  /// Sets `results` to the sums or means of all sources.
  template <class Load>
  void combine(Load&& load, int size, double divisor) {
    const Extent extent = extent_of(load, size);
    const bool is_exact = extent.is_finite() && size <= kMostExactAddends;
    if (F::kLowerBits == 0 && is_exact && extent.is_on_grid())
      add(load, size);
    else if (is_exact && can_shift())
      add_rounded(load, size);
    else
      return add_words(load, size, divisor);
    if (divisor == 1) return;
    for (size_t i = 0; i < count; ++i) results[i] /= divisor;
  }
};

/// The arguments of grid_combine().
struct Combined {
  DType dtype;
  ReduceOp op;
  const std::byte* const* sources;
  int size;
  std::byte* const* outputs;
  int output_count;

  /// Copies part of the first output to the others from number `from` on.
  void copy_to_others(int from, size_t offset, size_t bytes) const {
    for (int i = from; i < output_count; ++i) std::memcpy(outputs[i] + offset, outputs[0] + offset, bytes);
  }
};

/// Elements of two sources that are compared at a time; both fit the L1 cache.
constexpr size_t kPairBlock = 2048;

/// Computes elements `start` to `start + count` of two sources whose addends are on the grid. Returns false, and writes
/// nothing, if some are not.
template <class T, class F>
bool combine_pair(const Combined& all, size_t start, size_t count) {
  using Bits = typename F::Bits;
  const std::byte* const* const sources = all.sources;
  std::byte* const* const outputs = all.outputs;
  const size_t offset = start * sizeof(T);
  const auto source = [&](int i) { return reinterpret_cast<const T*>(sources[i] + offset); };
  const auto extent = GridBlock<F>::extent_of_two(source(0), source(1), count);
  constexpr Bits kLargest = static_cast<Bits>(F::kSpecial - 1) << F::kFraction;
  const bool fits = all.op == ReduceOp::Sum || extent.largest < kLargest;  // the sum of a mean must not overflow
  if (!extent.is_on_grid() || !fits) return false;
  // As in coll::combine(): memory that has been read is written directly, other memory by memcpy.
  const bool is_read = all.output_count == 2 && (outputs[1] == sources[0] || outputs[1] == sources[1]);
  std::byte* const first = outputs[0] + offset;
  std::byte* const second = is_read ? outputs[1] + offset : first;
  join_twice(all.dtype, all.op, first, second, sources[0] + offset, sources[1] + offset, count);
  all.copy_to_others(is_read ? 2 : 1, offset, count * sizeof(T));
  return true;
}

/// Computes elements `start` to `start + block.count`.
template <class T, class F>
void combine_block(const Combined& all, size_t start, GridBlock<F>& block) {
  const size_t offset = start * sizeof(T);
  const double divisor = all.op == ReduceOp::Avg ? all.size : 1;
  if constexpr (std::is_floating_point_v<T>) {
    block.combine([&](int i) { return reinterpret_cast<const T*>(all.sources[i] + offset); }, all.size, divisor);
  } else {
    float widened[kGridBlock];
    const auto load = [&](int i) {
      widen(all.dtype, reinterpret_cast<std::byte*>(widened), all.sources[i] + offset, block.count);
      return static_cast<const float*>(widened);
    };
    block.combine(load, all.size, divisor);
  }
  auto* first = reinterpret_cast<T*>(all.outputs[0] + offset);
  store_each(first, block.count, [&](size_t i) { return rounded<T>(block.results[i]); });
  all.copy_to_others(1, offset, block.count * sizeof(T));
}

void grid_combine(DType dtype, ReduceOp op, const std::byte* const* sources, int size, std::byte* const* outputs,
                  int output_count, size_t count) {
  const Combined all{dtype, op, sources, size, outputs, output_count};
  with_format(dtype, [&]<class T, class F>(T, F) {
    GridBlock<F> block;
    for (size_t start = 0; start < count; start += kPairBlock) {
      const size_t end = std::min(count, start + kPairBlock);
      if constexpr (std::is_floating_point_v<T>) {
        if (size == 2 && combine_pair<T, F>(all, start, end - start)) continue;
      }
      for (size_t at = start; at < end; at += kGridBlock) {
        block.count = std::min(kGridBlock, end - at);
        combine_block<T>(all, at, block);
      }
    }
  });
}

constexpr GridKernels kGridKernels{grid_raise, grid_add, grid_finish, grid_combine};

}  // namespace ringwise::coll::RINGWISE_LEVEL
