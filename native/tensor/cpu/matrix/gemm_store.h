// Stores the results of a matrix product: tiles that do not fit into C directly, and the last step for a block of C
// whose sums are complete, while it is in the cache. Included only by families/.
namespace ringwise::tensor::RINGWISE_LEVEL {

// The last step: out = activation(c + bias). `out` has the layout of C and may be C; c then holds the sums with the
// bias. Without `out` there is no last step.
struct Finish {
  float* out = nullptr;
  const float* bias = nullptr;
  Activation activation = Activation::None;
};

// Runs the last step for a part of C that begins `at` floats behind `c`, in column `col`. Rows lie `step` floats apart.
inline void finish_rows(const Finish& f, float* c, size_t at, size_t step, size_t col, size_t rows, size_t cols) {
  if (f.out == nullptr) return;
  with_activation(f.activation, [&](auto function, auto) RINGWISE_INLINE {
    for (size_t r = 0; r < rows; r++, at += step) {
      for_each_vec(cols, [&](size_t j, auto io) RINGWISE_INLINE {
        Vec value = io.load(c + at + j);
        if (f.bias) value += io.load(f.bias + col + j);
        if (f.out != c) io.store(c + at + j, value);
        io.store(f.out + at + j, function(value));
      });
    }
  });
}

// Adds `tile`, rows of kTileCols floats, to c[row * step + col] or overwrites it.
inline void write_part(float* c, size_t step, const float* tile, size_t rows, size_t cols, bool accumulate) {
  for (size_t r = 0; r < rows; r++) {
    for (size_t j = 0; j < cols; j += kLanes) {
      float* to = c + r * step + j;
      const size_t count = std::min<size_t>(cols - j, kLanes);
      const Vec sum = load(tile + r * kTileCols + j);
      store_some(to, accumulate ? load_some(to, count) + sum : sum, count);
    }
  }
}

// Does the same with the transpose of `tile`: element (row, col) belongs to c[col * step + row].
inline void write_turned(float* c, size_t step, const float* tile, size_t rows, size_t cols, bool accumulate) {
  for (size_t r = 0; r < rows; r += kLanes) {
    const size_t high = std::min<size_t>(rows - r, kLanes);
    for (size_t j = 0; j < cols; j += kLanes) {
      Vec block[kLanes] = {};
      for (size_t i = 0; i < high; i++) block[i] = load(tile + (r + i) * kTileCols + j);
      transpose(block);
      const size_t wide = std::min<size_t>(cols - j, kLanes);
      for (size_t i = 0; i < wide; i++) {
        float* to = c + (j + i) * step + r;
        store_some(to, accumulate ? load_some(to, high) + block[i] : block[i], high);
      }
    }
  }
}

}  // namespace ringwise::tensor::RINGWISE_LEVEL
