// The kernels of one instruction set; included by level_<name>.cc with RINGWISE_LEVEL set. No include guard, no
// includes: see level_headers.h.

namespace ringwise::coll::RINGWISE_LEVEL {

template <class T>
struct Stored {  // how T is loaded and in which type it is accumulated
  using Acc = T;
  static T load(T value) { return value; }
  static T store(T value) { return value; }
};
template <class T, T (*rounded)(float)>
struct StoredNarrow {
  using Acc = float;
  static float load(T value) { return to_float(value); }
  static T store(float value) { return rounded(value); }
};
template <>
struct Stored<Half> : StoredNarrow<Half, to_half> {};
template <>
struct Stored<BFloat> : StoredNarrow<BFloat, to_bfloat> {};
template <>
struct Stored<Float8E4M3> : StoredNarrow<Float8E4M3, to_float8_e4m3> {};
template <>
struct Stored<Float8E5M2> : StoredNarrow<Float8E5M2, to_float8_e5m2> {};

// Integers wrap: the arithmetic runs in the unsigned type of at least int's width, where overflow is defined.
template <class T, bool = std::is_integral_v<T>>
struct Wrapping {
  using type = T;
};
template <class T>
struct Wrapping<T, true> {
  using type = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
};

struct Add {
  template <class T>
  static T apply(T a, T b) {
    using W = typename Wrapping<T>::type;
    return static_cast<T>(static_cast<W>(a) + static_cast<W>(b));
  }
};
struct Multiply {
  template <class T>
  static T apply(T a, T b) {
    using W = typename Wrapping<T>::type;
    return static_cast<T>(static_cast<W>(a) * static_cast<W>(b));
  }
};
struct Mean {  // of two values
  template <class T>
  static T apply(T a, T b) {
    return (a + b) / T{2};
  }
};
struct Minimum {
  template <class T>
  static T apply(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) return a != a ? a : (b != b ? b : (b < a ? b : a));
    return b < a ? b : a;
  }
};
struct Maximum {
  template <class T>
  static T apply(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) return a != a ? a : (b != b ? b : (a < b ? b : a));
    return a < b ? b : a;
  }
};
struct And {
  template <class T>
  static T apply(T a, T b) {
    return static_cast<T>(a & b);
  }
};
struct Or {
  template <class T>
  static T apply(T a, T b) {
    return static_cast<T>(a | b);
  }
};
struct Xor {
  template <class T>
  static T apply(T a, T b) {
    return static_cast<T>(a ^ b);
  }
};

/// Calls `f` with the operation. The group has refused operations that the type does not have.
template <class T, class F>
void with_operation(ReduceOp op, F&& f) {
  switch (op) {
    case ReduceOp::Sum:
    case ReduceOp::Avg:
    case ReduceOp::PremulSum: return f(Add{});
    case ReduceOp::Prod: return f(Multiply{});
    case ReduceOp::Min: return f(Minimum{});
    case ReduceOp::Max: return f(Maximum{});
    default: break;
  }
  if constexpr (std::is_integral_v<T>) {
    if (op == ReduceOp::Band) return f(And{});
    if (op == ReduceOp::Bor) return f(Or{});
    if (op == ReduceOp::Bxor) return f(Xor{});
  }
}

/// Calls `f` with a value of the C++ type of `dtype`.
template <class F>
void with_type(DType dtype, F&& f) {
  switch (dtype) {
    case DType::Float32: return f(float{});
    case DType::Float64: return f(double{});
    case DType::Float16: return f(Half{});
    case DType::BFloat16: return f(BFloat{});
    case DType::Int8: return f(int8_t{});
    case DType::Int16: return f(int16_t{});
    case DType::Int32: return f(int32_t{});
    case DType::Int64: return f(int64_t{});
    case DType::UInt8:
    case DType::Bool: return f(uint8_t{});
    case DType::UInt16: return f(uint16_t{});
    case DType::UInt32: return f(uint32_t{});
    case DType::UInt64: return f(uint64_t{});
    case DType::Float8E4M3: return f(Float8E4M3{});
    case DType::Float8E5M2: return f(Float8E5M2{});
  }
}

template <class T>
constexpr bool is_float = std::is_floating_point_v<typename Stored<T>::Acc>;

// Elements of float16 that are converted at a time, by vector instructions, so that they stay in the L1 cache. The
// loops of all other types convert element by element.
constexpr size_t kPiece = 512;

void to_floats(const Half* halves, float* floats, size_t count) {
  size_t i = 0;
#if defined(RINGWISE_HAS_F16C)
  for (; i + 8 <= count; i += 8) {
    _mm256_storeu_ps(floats + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(halves + i))));
  }
#endif
  for (; i < count; ++i) floats[i] = to_float(halves[i]);
}

void to_halves(const float* floats, Half* halves, size_t count) {
  size_t i = 0;
#if defined(RINGWISE_HAS_F16C)
  for (; i + 8 <= count; i += 8) {
    const __m256 eight = _mm256_loadu_ps(floats + i);
    // The processor keeps the payload of a NaN, to_half does not.
    if (_mm256_movemask_ps(_mm256_cmp_ps(eight, eight, _CMP_UNORD_Q)) != 0) {
      for (size_t j = i; j < i + 8; ++j) halves[j] = to_half(floats[j]);
    } else {
      const __m128i rounded = _mm256_cvtps_ph(eight, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
      _mm_storeu_si128(reinterpret_cast<__m128i*>(halves + i), rounded);
    }
  }
#endif
  for (; i < count; ++i) halves[i] = to_half(floats[i]);
}

/// Returns the value in the type in which it is accumulated.
template <class T>
auto loaded(T value) {
  return Stored<T>::load(value);
}

/// Calls f(start, values, count) once with all elements. For float16, calls it for each piece, with floats.
template <class T, class F>
void each_piece(const T* elements, size_t count, F&& f) {
  if constexpr (!std::is_same_v<T, Half>) {
    f(size_t{0}, elements, count);
  } else {
    float values[kPiece];
    for (size_t start = 0; start < count; start += kPiece) {
      const size_t piece = std::min(kPiece, count - start);
      to_floats(elements + start, values, piece);
      f(start, static_cast<const float*>(values), piece);
    }
  }
}

/// Sets output[i] to value_of(i), rounded to T.
template <class T, class F>
void store_each(T* output, size_t count, F&& value_of) {
  if constexpr (!std::is_same_v<T, Half>) {
    RINGWISE_SAME_INDEX
    for (size_t i = 0; i < count; ++i) output[i] = Stored<T>::store(value_of(i));
  } else {
    float values[kPiece];
    for (size_t start = 0; start < count; start += kPiece) {
      const size_t piece = std::min(kPiece, count - start);
      for (size_t i = 0; i < piece; ++i) values[i] = value_of(start + i);
      to_halves(values, output + start, piece);
    }
  }
}

void widen(DType dtype, std::byte* accumulator, const std::byte* input, size_t count) {
  if (!is_narrow(dtype)) {
    std::memcpy(accumulator, input, count * byte_size(dtype));
    return;
  }
  with_type(dtype, [&]<class T>(T) {
    auto* acc = reinterpret_cast<typename Stored<T>::Acc*>(accumulator);
    const auto* in = reinterpret_cast<const T*>(input);
    if constexpr (std::is_same_v<T, Half>) return to_floats(in, acc, count);
    for (size_t i = 0; i < count; ++i) acc[i] = loaded(in[i]);
  });
}

// accumulate() and join() read and write only the same index, so the arrays may be equal and the compiler may
// vectorize.
void accumulate(DType dtype, ReduceOp op, std::byte* accumulator, const std::byte* input, size_t count) {
  with_type(dtype, [&]<class T>(T) {
    with_operation<T>(op, [&]<class F>(F) {
      auto* acc = reinterpret_cast<typename Stored<T>::Acc*>(accumulator);
      each_piece(reinterpret_cast<const T*>(input), count, [&](size_t start, const auto* in, size_t piece) {
        RINGWISE_SAME_INDEX
        for (size_t i = 0; i < piece; ++i) acc[start + i] = F::apply(acc[start + i], loaded(in[i]));
      });
    });
  });
}

void join(DType dtype, ReduceOp op, std::byte* accumulator, const std::byte* a, const std::byte* b, size_t count) {
  with_type(dtype, [&]<class T>(T) {
    with_operation<T>(op, [&]<class F>(F) {
      auto* acc = reinterpret_cast<typename Stored<T>::Acc*>(accumulator);
      const auto* others = reinterpret_cast<const T*>(b);
      each_piece(reinterpret_cast<const T*>(a), count, [&](size_t start, const auto* left, size_t piece) {
        each_piece(others + start, piece, [&](size_t, const auto* right, size_t) {
          RINGWISE_SAME_INDEX
          for (size_t i = 0; i < piece; ++i) acc[start + i] = F::apply(loaded(left[i]), loaded(right[i]));
        });
      });
    });
  });
}

void join_twice(DType dtype, ReduceOp op, std::byte* first, std::byte* second, const std::byte* a, const std::byte* b,
                size_t count) {
  with_type(dtype, [&]<class T>(T) {
    const auto run = [&]<class F>(F) {
      if constexpr (std::is_same_v<T, typename Stored<T>::Acc>) {
        auto* one = reinterpret_cast<T*>(first);
        auto* two = reinterpret_cast<T*>(second);
        const auto* left = reinterpret_cast<const T*>(a);
        const auto* right = reinterpret_cast<const T*>(b);
        RINGWISE_SAME_INDEX
        for (size_t i = 0; i < count; ++i) one[i] = two[i] = F::apply(left[i], right[i]);
      }
    };
    if constexpr (std::is_floating_point_v<T>) {
      if (op == ReduceOp::Avg) return run(Mean{});
    }
    with_operation<T>(op, run);
  });
}

void narrow(DType dtype, ReduceOp op, int size, std::byte* output, const std::byte* accumulator, size_t count) {
  if (op != ReduceOp::Avg && !is_narrow(dtype)) {
    if (output != accumulator) std::memcpy(output, accumulator, count * byte_size(dtype));
    return;
  }
  with_type(dtype, [&]<class T>(T) {
    if constexpr (is_float<T>) {
      using Acc = typename Stored<T>::Acc;
      const Acc divisor = op == ReduceOp::Avg ? static_cast<Acc>(size) : Acc{1};
      const auto* acc = reinterpret_cast<const Acc*>(accumulator);
      store_each(reinterpret_cast<T*>(output), count, [&](size_t i) { return acc[i] / divisor; });
    }
  });
}

void scale(DType dtype, double factor, std::byte* output, const std::byte* input, size_t count) {
  with_type(dtype, [&]<class T>(T) {
    if constexpr (is_float<T>) {
      using Acc = typename Stored<T>::Acc;
      auto* out = reinterpret_cast<T*>(output);
      each_piece(reinterpret_cast<const T*>(input), count, [&](size_t start, const auto* in, size_t piece) {
        store_each(out + start, piece, [&](size_t i) { return loaded(in[i]) * static_cast<Acc>(factor); });
      });
    }
  });
}

constexpr ReduceKernels kKernels{widen, accumulate, join, join_twice, narrow, scale};

}  // namespace ringwise::coll::RINGWISE_LEVEL
