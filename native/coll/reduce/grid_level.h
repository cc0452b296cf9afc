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

}  // namespace ringwise::coll::RINGWISE_LEVEL
