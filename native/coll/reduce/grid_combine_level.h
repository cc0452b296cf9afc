// The reproducible sums of addends that one rank can read, for one instruction set; included by level_<name>.cc behind
// grid_level.h. No include guard, no includes.
//
// Most sums need no words, because all addends of an element are on its grid: the last bit of the smallest one is worth
// at least a step of the grid. Then the sum of two addends in their own type has the right bits, and doubles hold the
// sum of more float32. Where an addend has to be rounded, (x + shift) - shift does it, with a shift whose last bit is
// worth a step. Sums of up to 512 addends stay below 2^52 steps, so doubles add them exactly; for float64 there are two
// such sums, of upper and of lower words.

namespace ringwise::coll::RINGWISE_LEVEL {

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
