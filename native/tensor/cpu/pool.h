// Pooling over planes: the largest element under a window, and means over boxes. Included only by level.h.
namespace ringwise::tensor::RINGWISE_LEVEL {

// Where a window at position o meets an axis: elements begin, begin + step, … below end.
struct Taps {
  ptrdiff_t begin, end;
  Taps(size_t o, size_t size, size_t kernel, size_t stride, size_t dilation, size_t pad)
      : begin(static_cast<ptrdiff_t>(o * stride) - static_cast<ptrdiff_t>(pad)),
        end(std::min(begin + static_cast<ptrdiff_t>((kernel - 1) * dilation) + 1, static_cast<ptrdiff_t>(size))) {
    while (begin < 0) begin += static_cast<ptrdiff_t>(dilation);
  }
};

template <class T>
void max_pool_planes(T* out, int64_t* positions, const T* a, size_t planes, const Window& w) {
  const auto down = static_cast<ptrdiff_t>(w.dilation_y), right = static_cast<ptrdiff_t>(w.dilation_x);
  const auto width = static_cast<ptrdiff_t>(w.width);
  for (size_t plane = 0; plane < planes; plane++, a += w.height * w.width) {
    for (size_t oy = 0; oy < w.out_height; oy++) {
      const Taps ys(oy, w.height, w.kernel_height, w.stride_y, w.dilation_y, w.pad_top);
      for (size_t ox = 0; ox < w.out_width; ox++) {
        const Taps xs(ox, w.width, w.kernel_width, w.stride_x, w.dilation_x, w.pad_left);
        T best = -std::numeric_limits<T>::infinity();
        ptrdiff_t at = ys.begin < ys.end && xs.begin < xs.end ? ys.begin * width + xs.begin : 0;
        for (ptrdiff_t y = ys.begin; y < ys.end; y += down) {
          for (ptrdiff_t x = xs.begin; x < xs.end; x += right) {
            const T value = a[y * width + x];
            // Selections, because a branch here is mispredicted half of the time.
            const bool is_better = (value > best) | (value != value);
            best = is_better ? value : best;
            at = is_better ? y * width + x : at;
          }
        }
        *out++ = best;
        *positions++ = at;
      }
    }
  }
}

void max_pool(DType dtype, void* out, int64_t* positions, const void* a, size_t planes, const Window& w) {
  with_float(dtype, [&](auto type) {
    using T = decltype(type);
    max_pool_planes(static_cast<T*>(out), positions, static_cast<const T*>(a), planes, w);
  });
}

struct Bin {
  int64_t begin, end, divisor;
};

// Calls box(plane, output element, rows, columns) for every element of the output.
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

void avg_pool(DType dtype, void* out, const void* a, const int64_t* bins, const PoolSizes& s) {
  with_float(dtype, [&](auto type) {
    using T = decltype(type);
    const T* from = static_cast<const T*>(a);
    for_each_box(bins, s, [&](size_t plane, size_t at, const Bin& ys, const Bin& xs) {
      double sum = 0;
      for (int64_t y = ys.begin; y < ys.end; y++) {
        const T* row = from + plane + static_cast<size_t>(y) * s.width;
        for (int64_t x = xs.begin; x < xs.end; x++) sum += static_cast<double>(row[x]);
      }
      static_cast<T*>(out)[at] = static_cast<T>(sum / static_cast<double>(ys.divisor * xs.divisor));
    });
  });
}

void avg_pool_grad(DType dtype, void* grad_in, const void* grad, const int64_t* bins, const PoolSizes& s) {
  with_float(dtype, [&](auto type) {
    using T = decltype(type);
    T* to = static_cast<T*>(grad_in);
    std::fill_n(to, s.planes * s.height * s.width, T{});
    for_each_box(bins, s, [&](size_t plane, size_t at, const Bin& ys, const Bin& xs) {
      const T share = static_cast<const T*>(grad)[at] / static_cast<T>(ys.divisor * xs.divisor);
      for (int64_t y = ys.begin; y < ys.end; y++) {
        T* row = to + plane + static_cast<size_t>(y) * s.width;
        for (int64_t x = xs.begin; x < xs.end; x++) row[x] += share;
      }
    });
  });
}

}  // namespace ringwise::tensor::RINGWISE_LEVEL
