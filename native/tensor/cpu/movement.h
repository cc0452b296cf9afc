// Filling, converting and gathering. Included only by level.h.
namespace ringwise::tensor::RINGWISE_LEVEL {

template <class T>
void fill_elements(void* out, T value, size_t count) {
  std::fill_n(static_cast<T*>(out), count, value);
}

// Towards zero; what does not fit, and NaN, becomes the least value, as the x86 instructions have it.
template <class To, class From>
inline To convert(From value) {
  if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    constexpr From kLimit = -static_cast<From>(std::numeric_limits<To>::min());
    return value >= -kLimit && value < kLimit ? static_cast<To>(value) : std::numeric_limits<To>::min();
  } else {
    return static_cast<To>(value);
  }
}

void fill(DType dtype, void* out, double value, size_t count) {
  switch (dtype) {
    case DType::Float32: return fill_elements(out, static_cast<float>(value), count);
    case DType::Int32: return fill_elements(out, convert<int32_t>(value), count);
    case DType::Int64: return fill_elements(out, convert<int64_t>(value), count);
    default: return;  // tensors have no other dtype
  }
}

template <class To, class From>
void convert_all(void* out, const void* a, size_t count) {
  const From* from = static_cast<const From*>(a);
  To* to = static_cast<To*>(out);
  for (size_t i = 0; i < count; i++) to[i] = convert<To>(from[i]);
}

template <class To>
void convert_from(DType dtype, void* out, const void* a, size_t count) {
  switch (dtype) {
    case DType::Float32: return convert_all<To, float>(out, a, count);
    case DType::Int32: return convert_all<To, int32_t>(out, a, count);
    case DType::Int64: return convert_all<To, int64_t>(out, a, count);
    default: return;  // tensors have no other dtype
  }
}

void copy(DType to, void* out, DType from, const void* a, size_t count) {
  if (to == from) {
    if (count > 0) std::memmove(out, a, count * byte_size(to));
    return;
  }
  switch (to) {
    case DType::Float32: return convert_from<float>(from, out, a, count);
    case DType::Int32: return convert_from<int32_t>(from, out, a, count);
    case DType::Int64: return convert_from<int64_t>(from, out, a, count);
    default: return;  // tensors have no other dtype
  }
}

// out[r, c] = a[r + c * step], the transpose of rows that lie `step` apart, in squares that stay in registers. Strips
// of a cache line's width are done together, so that a line is fetched once.
inline void transpose_floats(float* out, const float* a, size_t rows, size_t cols, size_t step) {
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
        for (size_t i = 0; i < high; i++) store_some(out + (r + i) * cols + c, block[i], wide);
      }
    }
  }
}

template <class T>
void gather(T* out, const T* a, const Walk<1>& walk) {
  const int inner = walk.rank - 1;
  const size_t count = walk.shape[inner];
  const ptrdiff_t stride = walk.strides[0][inner];
  for_each_row(walk, [&](size_t at, const ptrdiff_t* from) {
    const T* source = a + from[0];
    if (stride == 1) {
      std::memcpy(out + at, source, count * sizeof(T));
    } else {
      for (size_t i = 0; i < count; i++) out[at + i] = source[static_cast<ptrdiff_t>(i) * stride];
    }
  });
}

void strided(size_t element_bytes, void* out, const void* a, const Walk<1>& walk) {
  const Walk<1> simple = simplified(walk);
  const bool is_transpose = simple.rank == 2 && simple.strides[0][0] == 1 && simple.strides[0][1] > 1;
  if (element_bytes == sizeof(float) && is_transpose) {
    // Bits are only moved, so 4-byte integers may pass as floats.
    transpose_floats(static_cast<float*>(out), static_cast<const float*>(a), simple.shape[0], simple.shape[1],
                     static_cast<size_t>(simple.strides[0][1]));
  } else if (element_bytes == sizeof(uint32_t)) {
    gather(static_cast<uint32_t*>(out), static_cast<const uint32_t*>(a), simple);
  } else {
    gather(static_cast<uint64_t*>(out), static_cast<const uint64_t*>(a), simple);
  }
}

}  // namespace ringwise::tensor::RINGWISE_LEVEL
