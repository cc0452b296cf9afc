// Pooling over planes: the largest element under a window, and means over boxes. Included only by families/.
namespace ringwise::tensor::RINGWISE_LEVEL {

// The elements of an axis under a window at position o: begin, begin + dilation, … below end.
struct Taps {
  ptrdiff_t begin, end;
  Taps(size_t o, size_t size, size_t kernel, size_t stride, size_t dilation, size_t pad)
      : begin(static_cast<ptrdiff_t>(o * stride) - static_cast<ptrdiff_t>(pad)),
        end(std::min(begin + static_cast<ptrdiff_t>((kernel - 1) * dilation) + 1, static_cast<ptrdiff_t>(size))) {
    while (begin < 0) begin += static_cast<ptrdiff_t>(dilation);
  }
};

// Compares one element of every window of a row: element j is from[j * step], at position first + j * step. Uses
// selections, because branches here are mispredicted half of the time.
template <class T>
inline void take_larger(T* best, int64_t* positions, const T* from, size_t first, size_t step, size_t count) {
  for (size_t j = 0; j < count; j++) {
    const T value = from[j * step];
    const bool is_better = (value > best[j]) | (value != value);
    best[j] = is_better ? value : best[j];
    positions[j] = is_better ? static_cast<int64_t>(first + j * step) : positions[j];
  }
}

// Compares one element of all windows of a row of the output, then the next one, so that successive comparisons do not
// depend on each other.
template <class T>
void max_pool_planes(T* out, int64_t* positions, const T* a, size_t planes, const Window& w) {
  for (size_t row = 0; row < planes * w.out_height; row++, out += w.out_width, positions += w.out_width) {
    const T* plane = a + row / w.out_height * w.height * w.width;
    const Taps ys(row % w.out_height, w.height, w.kernel_height, w.stride_y, w.dilation_y, w.pad_top);
    std::fill_n(out, w.out_width, -std::numeric_limits<T>::infinity());
    for (size_t ox = 0; ox < w.out_width; ox++) {
      const Taps xs(ox, w.width, w.kernel_width, w.stride_x, w.dilation_x, w.pad_left);
      const bool is_inside = ys.begin < ys.end && xs.begin < xs.end;
      positions[ox] = is_inside ? ys.begin * static_cast<ptrdiff_t>(w.width) + xs.begin : 0;
    }
    for (ptrdiff_t y = ys.begin; y < ys.end; y += static_cast<ptrdiff_t>(w.dilation_y)) {
      for (size_t kx = 0; kx < w.kernel_width; kx++) {
        const Range xs = inside(w.width, w.out_width, w.stride_x, kx * w.dilation_x, w.pad_left);
        if (xs.size == 0) continue;
        const size_t first = static_cast<size_t>(y) * w.width + xs.begin * w.stride_x + kx * w.dilation_x - w.pad_left;
        take_larger(out + xs.begin, positions + xs.begin, plane + first, first, w.stride_x, xs.size);
      }
    }
  }
}

void max_pool(const MaxPool& x) {
  with_float(x.dtype, [&](auto type) {
    using T = decltype(type);
    max_pool_planes(static_cast<T*>(x.out), x.positions, static_cast<const T*>(x.a), x.planes, x.window);
  });
}

struct Bin {
  int64_t begin, end, divisor;
};

// Calls box(offset of its plane, output element, rows, columns) for every element of the output.
template <class Box>
inline void for_each_box(const int64_t* bins, const PoolSizes& s, Box box) {
  const Bin* rows = reinterpret_cast<const Bin*>(bins);
  const Bin* cols = rows + s.out_height;
  size_t at = 0;
  for (size_t plane = 0; plane < s.planes; plane++) {
    for (size_t oy = 0; oy < s.out_height; oy++) {
      for (size_t ox = 0; ox < s.out_width; ox++) box(plane * s.height * s.width, at++, rows[oy], cols[ox]);
    }
  }
}

void avg_pool(const AvgPool& s) {
  with_float(s.dtype, [&](auto type) {
    using T = decltype(type);
    const T* from = static_cast<const T*>(s.a);
    for_each_box(s.bins, s, [&](size_t plane, size_t at, const Bin& ys, const Bin& xs) {
      double sum = 0;
      for (int64_t y = ys.begin; y < ys.end; y++) {
        const T* row = from + plane + static_cast<size_t>(y) * s.width;
        for (int64_t x = xs.begin; x < xs.end; x++) sum += static_cast<double>(row[x]);
      }
      static_cast<T*>(s.out)[at] = static_cast<T>(sum / static_cast<double>(ys.divisor * xs.divisor));
    });
  });
}

void avg_pool_grad(const AvgPoolGrad& s) {
  with_float(s.dtype, [&](auto type) {
    using T = decltype(type);
    T* to = static_cast<T*>(s.grad_in);
    std::fill_n(to, s.planes * s.height * s.width, T{});
    for_each_box(s.bins, s, [&](size_t plane, size_t at, const Bin& ys, const Bin& xs) {
      const T share = static_cast<const T*>(s.grad)[at] / static_cast<T>(ys.divisor * xs.divisor);
      for (int64_t y = ys.begin; y < ys.end; y++) {
        T* row = to + plane + static_cast<size_t>(y) * s.width;
        for (int64_t x = xs.begin; x < xs.end; x++) row[x] += share;
      }
    });
  });
}

}  // namespace ringwise::tensor::RINGWISE_LEVEL
