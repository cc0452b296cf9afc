// Moves up to kTile elements of any dtype and stride into a buffer of a computing type, and back. All conversions of
// dtypes on the CPU are here. Strides are bytes. Included only by families/.
namespace ringwise::tensor::RINGWISE_LEVEL {

constexpr size_t kTile = 512;       // elements: four buffers stay in the L1 cache
constexpr size_t kGrain = 1 << 16;  // elements that are worth another thread: tens of µs

// Element types of memory. Half and BFloat are the bit patterns of base/half.h.
struct Bool {
  uint8_t value;
};

// Calls use(value of the element type of a dtype).
template <class Use>
inline auto with_type(DType dtype, Use use) {
  switch (dtype) {
    case DType::Float64: return use(double{});
    case DType::Float16: return use(Half{});
    case DType::BFloat16: return use(BFloat{});
    case DType::Int32: return use(int32_t{});
    case DType::Int64: return use(int64_t{});
    case DType::UInt8: return use(uint8_t{});
    case DType::Bool: return use(Bool{});
    default: return use(float{});
  }
}

// Calls use(value of the computing type of a dtype).
template <class Use>
inline auto with_compute(DType dtype, Use use) {
  switch (dtype) {
    case DType::Float64: return use(double{});
    case DType::Float32:
    case DType::Float16:
    case DType::BFloat16: return use(float{});
    default: return use(int64_t{});
  }
}

template <class T>
constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, double>)
    return DType::Float64;
  else if constexpr (std::is_same_v<T, int64_t>)
    return DType::Int64;
  else
    return DType::Float32;
}

// Rounds towards zero. NaN and values that do not fit become the least value, as with the x86 instructions.
template <class To, class From>
inline To truncated(From value) {
  constexpr From kLimit = -static_cast<From>(std::numeric_limits<To>::min());
  return value >= -kLimit && value < kLimit ? static_cast<To>(value) : std::numeric_limits<To>::min();
}

// Converts an element in memory to a computing type.
template <class To, class From>
inline To read_as(From value) {
  if constexpr (std::is_same_v<From, Half> || std::is_same_v<From, BFloat>)
    return read_as<To>(to_float(value));
  else if constexpr (std::is_same_v<From, Bool>)
    return static_cast<To>(value.value);
  else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>)
    return truncated<To>(value);
  else
    return static_cast<To>(value);
}

// Converts a value of a computing type to an element in memory. Integers wrap around.
template <class To, class From>
inline To write_as(From value) {
  if constexpr (std::is_same_v<To, Half>)
    return to_half(static_cast<float>(value));
  else if constexpr (std::is_same_v<To, BFloat>)
    return to_bfloat(static_cast<float>(value));
  else if constexpr (std::is_same_v<To, Bool>)
    return Bool{value != 0};
  else if constexpr (std::is_floating_point_v<From> && std::is_same_v<To, uint8_t>)
    return static_cast<uint8_t>(truncated<int64_t>(value));
  else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>)
    return truncated<To>(value);
  else
    return static_cast<To>(value);
}

#if RINGWISE_VECTOR_BYTES >= 32
// Convert float16 in groups, by the processor's own instruction. Return the number of elements in whole groups, which
// are converted; the caller converts the rest.
inline size_t read_halves(float* out, const Half* from, size_t count) {
  size_t i = 0;
#if RINGWISE_VECTOR_BYTES == 64
  for (; i + 16 <= count; i += 16) {
    const __m256i half = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i));
    _mm512_storeu_ps(out + i, _mm512_maskz_cvtph_ps(0xffff, half));
  }
#else
  for (; i + 8 <= count; i += 8) {
    _mm256_storeu_ps(out + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i))));
  }
#endif
  return i;
}
inline size_t write_halves(Half* out, const float* from, size_t count) {
  size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
  }
  return i;
}
#endif

// Reads out[i] from data + i * stride.
template <class T, class From>
void read_tile(T* out, const char* data, ptrdiff_t stride, size_t count) {
  if (stride == sizeof(From)) {
    const From* from = reinterpret_cast<const From*>(data);
    size_t i = 0;
#if RINGWISE_VECTOR_BYTES >= 32
    if constexpr (std::is_same_v<From, Half> && std::is_same_v<T, float>) i = read_halves(out, from, count);
#endif
    for (; i < count; i++) out[i] = read_as<T>(from[i]);
  } else if (stride == 0) {
    std::fill_n(out, count, read_as<T>(*reinterpret_cast<const From*>(data)));
  } else {
    for (size_t i = 0; i < count; i++, data += stride) out[i] = read_as<T>(*reinterpret_cast<const From*>(data));
  }
}

// Writes values[i] to data + i * stride.
template <class T, class To>
void write_tile(char* data, ptrdiff_t stride, const T* values, size_t count) {
  if (stride == sizeof(To)) {
    To* to = reinterpret_cast<To*>(data);
    size_t i = 0;
#if RINGWISE_VECTOR_BYTES >= 32
    if constexpr (std::is_same_v<To, Half> && std::is_same_v<T, float>) i = write_halves(to, values, count);
#endif
    for (; i < count; i++) to[i] = write_as<To>(values[i]);
  } else {
    for (size_t i = 0; i < count; i++, data += stride) *reinterpret_cast<To*>(data) = write_as<To>(values[i]);
  }
}

template <class T>
using ReadTile = void (*)(T*, const char*, ptrdiff_t, size_t);
template <class T>
using WriteTile = void (*)(char*, ptrdiff_t, const T*, size_t);

template <class T>
inline ReadTile<T> reader(DType dtype) {
  return with_type(dtype, [](auto from) -> ReadTile<T> { return &read_tile<T, decltype(from)>; });
}
template <class T>
inline WriteTile<T> writer(DType dtype) {
  return with_type(dtype, [](auto to) -> WriteTile<T> { return &write_tile<T, decltype(to)>; });
}

// Reads the row of one operand in tiles: in place where its elements are dense and of the computing type.
template <class T>
class RowReader {
 public:
  RowReader(const Operand& operand, ptrdiff_t stride)
      : stride_(stride),
        is_direct_(operand.dtype == dtype_of<T>() && stride == sizeof(T)),
        read_(reader<T>(operand.dtype)) {}

  // Returns elements [begin, begin + count) of the row at `data`, valid until the next call. At most kTile elements.
  const T* tile(const char* data, size_t begin, size_t count) {
    const char* at = data + static_cast<ptrdiff_t>(begin) * stride_;
    if (is_direct_) return reinterpret_cast<const T*>(at);
    if (stride_ == 0 && data == filled_from_ && count <= filled_) return buffer_;
    read_(buffer_, at, stride_, count);
    filled_from_ = data;
    filled_ = count;
    return buffer_;
  }

 private:
  ptrdiff_t stride_;
  bool is_direct_;
  ReadTile<T> read_;
  const char* filled_from_ = nullptr;
  size_t filled_ = 0;
  alignas(64) T buffer_[kTile];
};

}  // namespace ringwise::tensor::RINGWISE_LEVEL
