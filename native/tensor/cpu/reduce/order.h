// Running sums, sorting, and triangles of matrices. Included only by families/.
namespace ringwise::tensor::RINGWISE_LEVEL {

// Computes running sums. Totals are float64 (uint64 for integers) and are written in the dtype of the input.
void cumsum(const Cumsum& x) {
  const size_t outer = x.outer, size = x.size, inner = x.inner;
  const DType dtype = x.dtype;
  const auto bytes = static_cast<ptrdiff_t>(byte_size(dtype));
  with_compute(dtype, [&](auto type) {
    using T = decltype(type);
    const auto step = static_cast<ptrdiff_t>(inner) * bytes;
    const ReadTile<T> read = reader<T>(dtype);
    const WriteTile<T> write = writer<T>(dtype);
    T tile[kTile];
    for (size_t column = 0; column < outer * inner; column++) {
      ptrdiff_t at = static_cast<ptrdiff_t>(column / inner * size * inner + column % inner) * bytes;
      if (x.reverse && size > 0) at += static_cast<ptrdiff_t>(size - 1) * step;
      const ptrdiff_t stride = x.reverse ? -step : step;
      SumOf<T> total = 0;
      for (size_t begin = 0; begin < size; begin += kTile) {
        const size_t count = std::min(size - begin, kTile);
        const ptrdiff_t here = at + static_cast<ptrdiff_t>(begin) * stride;
        read(tile, static_cast<const char*>(x.a) + here, stride, count);
        for (size_t i = 0; i < count; i++) {
          total += static_cast<SumOf<T>>(tile[i]);
          tile[i] = static_cast<T>(total);
        }
        write(static_cast<char*>(x.out) + here, stride, tile, count);
      }
    }
  });
}

void sort(const Sort& x) {
  const size_t rows = x.rows, cols = x.cols, count = x.count, bytes = byte_size(x.dtype);
  with_compute(x.dtype, [&](auto type) {
    using T = decltype(type);
    const ReadTile<T> read = reader<T>(x.dtype);
    const WriteTile<T> write = writer<T>(x.dtype);
    struct Entry {
      T value;
      int64_t at;
    };
    // Ties stay in the order of the input, so no two entries are equal.
    const auto is_before = [descending = x.descending](const Entry& one, const Entry& two) {
      const bool is_less = two.value != two.value ? one.value == one.value : one.value < two.value;
      const bool is_more = one.value != one.value ? two.value == two.value : one.value > two.value;
      return is_less == is_more ? one.at < two.at : is_less != descending;
    };
    const std::unique_ptr<Entry[]> entries(new Entry[cols]);
    for (size_t r = 0; r < rows; r++) {
      for (size_t c = 0; c < cols; c++) {
        read(&entries[c].value, static_cast<const char*>(x.a) + (r * cols + c) * bytes, 0, 1);
        entries[c].at = static_cast<int64_t>(c);
      }
      std::partial_sort(entries.get(), entries.get() + count, entries.get() + cols, is_before);
      for (size_t i = 0; i < count; i++) {
        write(static_cast<char*>(x.values) + (r * count + i) * bytes, static_cast<ptrdiff_t>(bytes), &entries[i].value,
              1);
        x.indices[r * count + i] = entries[i].at;
      }
    }
  });
}

void triangle(const Triangle& x) {
  const size_t rows = x.rows, cols = x.cols, bytes = byte_size(x.dtype);
  char* to = static_cast<char*>(x.out);
  const char* from = static_cast<const char*>(x.a);
  for (size_t row = 0; row < x.batch * rows; row++, to += cols * bytes, from += cols * bytes) {
    // Columns before `edge` are on or below the diagonal; for the upper triangle, strictly below it.
    const int64_t edge = static_cast<int64_t>(row % rows) + x.diagonal + (x.upper ? 0 : 1);
    const size_t below = edge < 0 ? 0 : std::min(static_cast<size_t>(edge), cols);
    const size_t begin = x.upper ? below : 0, end = x.upper ? cols : below;
    std::memset(to, 0, begin * bytes);
    std::memcpy(to + begin * bytes, from + begin * bytes, (end - begin) * bytes);
    std::memset(to + end * bytes, 0, (cols - end) * bytes);
  }
}

}  // namespace ringwise::tensor::RINGWISE_LEVEL
