// The totals of reductions: sums, products and extremes of runs. Included only by the files of families/.
namespace ringwise::tensor::RINGWISE_LEVEL {

constexpr size_t kSumBlock = 8;  // vectors, or rows of a reduction, that are added up in float32

// Float64 totals of every lane of a Vec.
class WideSum {
 public:
  void add(Vec v) {
    HalfVec half[2];
    __builtin_memcpy(half, &v, sizeof v);
    low_ += __builtin_convertvector(half[0], DoubleVec);
    high_ += __builtin_convertvector(half[1], DoubleVec);
  }
  double total() const {
    const DoubleVec both = low_ + high_;
    double sum = 0;
    for (int i = 0; i < kLanes / 2; i++) sum += both[i];
    return sum;
  }

 private:
  typedef float HalfVec __attribute__((vector_size(RINGWISE_VECTOR_BYTES / 2)));
  typedef double DoubleVec __attribute__((vector_size(RINGWISE_VECTOR_BYTES)));
  DoubleVec low_ = {}, high_ = {};
};

// Returns the sum of a contiguous run.
inline double sum_run(const float* a, size_t count) {
  constexpr size_t kBlock = kSumBlock * kLanes;
  WideSum total;
  size_t i = 0;
  for (; i + kBlock <= count; i += kBlock) {
    Vec even = {}, odd = {};
    for (size_t j = 0; j < kBlock; j += 2 * kLanes) {
      even += load(a + i + j);
      odd += load(a + i + j + kLanes);
    }
    total.add(even + odd);
  }
  for_each_vec(count - i, [&](size_t j, auto io) RINGWISE_INLINE { total.add(io.load(a + i + j)); });
  return total.total();
}

// Returns the largest element of a run; NaN if it has one.
inline float max_run(const float* a, size_t count) {
  constexpr float kLeast = -std::numeric_limits<float>::infinity();
  Vec best = splat(kLeast);
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) best = max_vec(best, load(a + i));
  if (i < count) best = max_vec(best, load_partial(a + i, count - i, kLeast));
  return over_lanes(best, [](auto x, auto y) RINGWISE_INLINE { return max_vec(x, y); });
}

template <class T>
using SumOf = std::conditional_t<std::is_same_v<T, int64_t>, uint64_t, double>;

// A reduction: the type of its total, the initial total, and how an element or a run of elements is added.
template <class T>
struct Sum {
  using Total = SumOf<T>;
  static Total start() { return 0; }
  static Total take(Total total, T value) { return total + static_cast<Total>(value); }
  static Total run(Total total, const T* values, size_t count) {
    if constexpr (std::is_same_v<T, float>) return total + sum_run(values, count);
    for (size_t i = 0; i < count; i++) total = take(total, values[i]);
    return total;
  }
};
template <class T>
struct Prod {
  using Total = SumOf<T>;
  static Total start() { return 1; }
  static Total take(Total total, T value) { return total * static_cast<Total>(value); }
  static Total run(Total total, const T* values, size_t count) {
    for (size_t i = 0; i < count; i++) total = take(total, values[i]);
    return total;
  }
};
template <class T, bool kIsMax>
struct Extreme {
  using Total = T;
  static T start() {
    using Limits = std::numeric_limits<T>;
    if constexpr (Limits::has_infinity)
      return kIsMax ? -Limits::infinity() : Limits::infinity();
    else
      return kIsMax ? Limits::min() : Limits::max();
  }
  static T take(T best, T value) { return ((kIsMax ? value > best : value < best) | (value != value)) ? value : best; }
  static T run(T best, const T* values, size_t count) {
    if constexpr (std::is_same_v<T, float> && kIsMax) return take(best, max_run(values, count));
    for (size_t i = 0; i < count; i++) best = take(best, values[i]);
    return best;
  }
};

}  // namespace ringwise::tensor::RINGWISE_LEVEL
