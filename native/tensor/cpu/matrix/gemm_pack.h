// Packs a block of an operand of any storage order to [k][width], the order in which the tile kernel reads.
// Included only by families/.
namespace ringwise::tensor::RINGWISE_LEVEL {

struct Range {
  size_t begin, size;
};

// Rows of A or columns of B that are packed to out[p * width + j]; the rest of `width` becomes 0.
struct Piece {
  float* out;
  size_t width;
  Range range;
};

// A whole vector may be stored where fewer floats belong if the floats behind them are written later. Buffers end with
// this many floats of slack.
constexpr size_t kPackSlack = kLanes;
constexpr size_t kPiecesAtOnce = 16;  // pieces that are packed together, because one row of memory has elements of all

// Copies `cols` floats, and fills the rest of `width` with zeros.
inline void pack_row(float* out, size_t width, const float* a, size_t cols) {
  size_t j = 0;
  for (; j + kLanes <= cols; j += kLanes) store(out + j, load(a + j));
  if (j < cols) {
    store(out + j, load_partial(a + j, cols - j));
    j += kLanes;
  }
  for (; j < width; j += kLanes) store(out + j, Vec{});
}

// Packs an operand whose element (j, p) is a[p * step + j].
inline void pack_rows(const Piece* pieces, size_t count, const float* a, size_t step, size_t k) {
  for (size_t first = 0; first < count; first += kPiecesAtOnce) {
    const Piece* end = pieces + std::min(count, first + kPiecesAtOnce);
    for (size_t p = 0; p < k; p++) {
      for (const Piece* piece = pieces + first; piece < end; piece++) {
        pack_row(piece->out + p * piece->width, piece->width, a + p * step + piece->range.begin, piece->range.size);
      }
    }
  }
}

// Packs out[p * width + j] = a[j * step + p] for j < cols; the rest of `width` becomes 0.
inline void pack_columns(float* out, size_t width, const float* a, size_t step, size_t cols, size_t k) {
  for (size_t j = 0; j < width; j += kLanes) {
    const size_t here = cols > j ? std::min<size_t>(cols - j, kLanes) : 0;
    const size_t room = std::min<size_t>(width - j, kLanes);
    // After the first group of columns, a whole vector would reach into the next step's finished first group.
    const bool is_whole = j == 0 || room == kLanes;
    // Lanes beyond the last column read it again; their values are not used.
    const float* source[kLanes];
    IntVec is_used;
    for (size_t r = 0; r < kLanes; r++) {
      source[r] = a + (here == 0 ? 0 : j + std::min(r, here - 1)) * step;
      is_used[r] = r < here ? -1 : 0;
    }
    const auto pack = [&](size_t p, size_t steps, auto read) RINGWISE_INLINE {
      Vec rows[kLanes];
      unrolled<kLanes>([&](auto r) RINGWISE_INLINE { rows[r] = read(source[r] + p); });
      transpose(rows);
      float* to = out + p * width + j;
      unrolled<kLanes>([&](auto s) RINGWISE_INLINE {
        if (s >= steps) return;
        const Vec row = is_used ? rows[s] : Vec{};
        if (is_whole)
          store(to + s * width, row);
        else
          store_partial(to + s * width, row, room);
      });
    };
    size_t p = 0;
    for (; p + kLanes <= k; p += kLanes) pack(p, kLanes, [&](const float* from) RINGWISE_INLINE { return load(from); });
    if (p < k) pack(p, k - p, [&](const float* from) RINGWISE_INLINE { return load_partial(from, k - p); });
  }
}

// Working space of one thread. Grows to the largest size that was asked for; freed when the thread ends. reserve() does
// not keep the content.
template <class T = float>
class PackBuffer {
 public:
  T* reserve(size_t count) {
    count += kPackSlack;
    if (count > capacity_) {
      capacity_ = 0;
      data_.reset();
      data_.reset(static_cast<T*>(::operator new(count * sizeof(T), std::align_val_t{64})));
      capacity_ = count;
    }
    return data_.get();
  }

 private:
  struct Free {
    void operator()(T* p) const { ::operator delete(p, std::align_val_t{64}); }
  };
  std::unique_ptr<T, Free> data_;
  size_t capacity_ = 0;
};

}  // namespace ringwise::tensor::RINGWISE_LEVEL
