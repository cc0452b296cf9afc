// Packing: a block of an operand, in any storage order, becomes [k][width], the order in which the tile kernel reads.
// Included only by level.h.
namespace ringwise::tensor::RINGWISE_LEVEL {

// A whole vector may be stored where fewer floats belong, as long as what follows is written later. Buffers end
// with this many floats of slack.
constexpr size_t kPackSlack = kLanes;

// out[p * width + j] = a[p * step + j] for j < cols; 0 for the rest of `width`.
inline void pack_rows(float* out, size_t width, const float* a, size_t step, size_t cols, size_t k) {
  const size_t whole = cols / kLanes * kLanes, rest = cols - whole;
  for (size_t p = 0; p < k; p++, out += width, a += step) {
    for (size_t j = 0; j < whole; j += kLanes) store(out + j, load(a + j));
    if (rest > 0) store(out + whole, load_partial(a + whole, rest));
    for (size_t j = whole + (rest > 0 ? kLanes : 0); j < width; j += kLanes) store(out + j, Vec{});
  }
}

// out[p * width + j] = a[j * step + p] for j < cols; 0 for the rest of `width`.
inline void pack_columns(float* out, size_t width, const float* a, size_t step, size_t cols, size_t k) {
  for (size_t j = 0; j < width; j += kLanes) {
    const size_t here = cols > j ? std::min<size_t>(cols - j, kLanes) : 0;
    const size_t room = std::min<size_t>(width - j, kLanes);
    for (size_t p = 0; p < k; p += kLanes) {
      const size_t steps = std::min<size_t>(k - p, kLanes);
      Vec rows[kLanes] = {};
      for (size_t r = 0; r < here; r++) {
        const float* source = a + (j + r) * step + p;
        rows[r] = load_some(source, steps);
      }
      transpose(rows);
      for (size_t s = 0; s < steps; s++) {
        float* target = out + (p + s) * width + j;
        // After the first group of columns, a whole vector would reach into the next step's finished first group.
        if (j == 0 || room == kLanes) store(target, rows[s]);
        else store_partial(target, rows[s], room);
      }
    }
  }
}

}  // namespace ringwise::tensor::RINGWISE_LEVEL
