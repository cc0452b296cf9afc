// Copies between any dtypes and strides. Included only by families/.
namespace ringwise::tensor::RINGWISE_LEVEL {

template <class T>
void move_rows(const Walk& walk) {
  const int inner = walk.rank - 1;
  const size_t count = walk.shape[inner];
  const ptrdiff_t to_stride = walk.operand[0].strides[inner], from_stride = walk.operand[1].strides[inner];
  for_each_row(walk, [&](char* const* at) {
    char* to = at[0];
    const char* from = at[1];
    if (to_stride == sizeof(T) && from_stride == sizeof(T)) {
      std::memmove(to, from, count * sizeof(T));
    } else if (to_stride == sizeof(T) && from_stride == 0) {
      const T value = *reinterpret_cast<const T*>(from);  // a copy: libc++ would read it again for each element
      std::fill_n(reinterpret_cast<T*>(to), count, value);
    } else {
      for (size_t i = 0; i < count; i++, to += to_stride, from += from_stride) {
        *reinterpret_cast<T*>(to) = *reinterpret_cast<const T*>(from);
      }
    }
  });
}

// Tells whether the elements have 4 bytes, and the two innermost dimensions are a transpose into dense rows.
inline bool is_transpose(const Walk& walk) {
  if (walk.rank < 2 || byte_size(walk.operand[0].dtype) != sizeof(float)) return false;
  const ptrdiff_t* to = walk.operand[0].strides + walk.rank - 2;
  const ptrdiff_t* from = walk.operand[1].strides + walk.rank - 2;
  constexpr ptrdiff_t kFloat = sizeof(float);
  return to[1] == kFloat && to[0] > 0 && from[0] == kFloat && from[1] > 0;
}

// Copies transposed matrices. Bits are only moved, so 4-byte integers may pass as floats.
inline void move_transposed(const Walk& walk) {
  const int outer = walk.rank - 2;
  Walk matrices = walk;  // each row of this walk is a matrix
  matrices.rank = outer + 1;
  matrices.shape[outer] = 1;
  for_each_row(matrices, [&](char* const* at) {
    transpose_floats(reinterpret_cast<float*>(at[0]),
                     static_cast<size_t>(walk.operand[0].strides[outer]) / sizeof(float),
                     reinterpret_cast<const float*>(at[1]), walk.shape[outer], walk.shape[outer + 1],
                     static_cast<size_t>(walk.operand[1].strides[outer + 1]) / sizeof(float));
  });
}

// Copies between operands of one dtype.
inline void move(const Walk& walk) {
  if (is_transpose(walk)) return move_transposed(walk);
  switch (byte_size(walk.operand[0].dtype)) {
    case 1: return move_rows<uint8_t>(walk);
    case 2: return move_rows<uint16_t>(walk);
    case 4: return move_rows<uint32_t>(walk);
    default: return move_rows<uint64_t>(walk);
  }
}

// Copies between two dtypes through the computing type T.
template <class T>
void convert_rows(const Walk& walk) {
  const int inner = walk.rank - 1;
  const size_t length = walk.shape[inner];
  const Operand &out = walk.operand[0], &from = walk.operand[1];
  RowReader<T> a(from, from.strides[inner]);
  const WriteTile<T> write = writer<T>(out.dtype);
  for_each_row(walk, [&](char* const* at) {
    for (size_t i = 0; i < length; i += kTile) {
      const size_t count = std::min(length - i, kTile);
      const T* tile = a.tile(at[1], i, count);
      write(at[0] + static_cast<ptrdiff_t>(i) * out.strides[inner], out.strides[inner], tile, count);
    }
  });
}

void copy(const Copy& x) {
  const Walk simple = simplified(x.walk);
  const DType to = simple.operand[0].dtype, from = simple.operand[1].dtype;
  for_each_part_of(simple, kGrain, [&](const Walk& part) {
    if (to == from) return move(part);
    with_compute(converting_type(to, from), [&](auto type) { convert_rows<decltype(type)>(part); });
  });
}

}  // namespace ringwise::tensor::RINGWISE_LEVEL
