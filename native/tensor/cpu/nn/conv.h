// Convolution as matrix products. One operand, the pixels under each window, is not stored as a matrix: it is packed
// for the tile kernel directly from a padded copy of one image, by a table of offsets for its columns and one for its
// rows.
//
//   out[co, pixel]       = weight[co, tap] · x[tap, pixel]
//   grad_weight[co, tap] = grad[co, pixel] · x[pixel, tap], where the copy has its channels innermost, so that the taps
//                          of one window row lie one behind the other
//   grad_x[ci, pixel]    = weight[ci, tap] · grad[tap, pixel], for each phase of the strides: pixels that lie a stride
//                          apart are reached by the same taps
//
// Threads share images, or output channels for the gradient of the weight, so that one thread computes each sum.
// Included only by families/.
namespace ringwise::tensor::RINGWISE_LEVEL {

// A matrix in pieces: element (j, p), with p along k, is data[outer[j] + inner[p]]. Up to kPackSlack floats behind any
// element are read.
struct Gathered {
  const float* data;
  const size_t* outer;
  const size_t* inner;

  void pack(const Piece* pieces, size_t count, Range k) const {
    for (size_t i = 0; i < count; i++) pack_piece(pieces[i].out, pieces[i].width, pieces[i].range, k);
  }
  // Columns whose elements lie side by side are copied as whole vectors: the next vector or row overwrites the surplus,
  // or the surplus lies in the slack.
  void pack_piece(float* out, size_t width, Range columns, Range k) const {
    Copied vectors[kTileCols];
    size_t count = 0;
    for (size_t j = 0; j < columns.size; j++) {
      const size_t from = outer[columns.begin + j];
      const Copied* last = vectors + count - 1;
      const size_t behind =
          count > 0 ? j - last->to : kLanes;  // the column's place behind the begin of the last vector
      if (behind >= kLanes || from != last->from + behind) vectors[count++] = {j, from};
    }
    switch (count) {
      case 1: return pack_vectors<1>(out, width, columns.size, k, vectors);
      case 2: return pack_vectors<2>(out, width, columns.size, k, vectors);
      default: break;
    }
    for (size_t p = 0; p < k.size; p++, out += width) {
      const float* from = data + inner[k.begin + p];
      for (size_t i = 0; i < count; i++) store(out + vectors[i].to, load(from + vectors[i].from));
      for (size_t j = columns.size; j < width; j++) out[j] = 0;
    }
  }

 private:
  // A vector of the columns from `to` on, whose first element is data[from + inner[p]].
  struct Copied {
    size_t to, from;
  };

  // Does what the loop above does, with all that stays the same in registers.
  template <int N>
  void pack_vectors(float* out, size_t width, size_t cols, Range k, const Copied* given) const {
    Copied vectors[N];
    std::copy_n(given, N, vectors);
    const float* all = data;
    const size_t *step = inner + k.begin, *end = step + k.size;
    for (; step < end; step++, out += width) {
      const float* from = all + *step;
      unrolled<N>([&](auto i) RINGWISE_INLINE { store(out + vectors[i].to, load(from + vectors[i].from)); });
      for (size_t j = cols; j < width; j++) out[j] = 0;
    }
  }
};

// A plane with zeros around it, [rows, cols]. The plane's first element is at (top, left); elements of the plane that
// do not fit are left out.
struct Padding {
  size_t rows, cols, top, left;
};

inline Padding padding_of(const Window& w) {
  return {(w.out_height - 1) * w.stride_y + (w.kernel_height - 1) * w.dilation_y + 1,
          (w.out_width - 1) * w.stride_x + (w.kernel_width - 1) * w.dilation_x + 1, w.pad_top, w.pad_left};
}

// Calls row(y, count): row `top` + y of the padded plane has `count` elements of row y of the plane.
template <class Row>
inline void for_each_inside_row(const Padding& p, size_t height, size_t width, Row row) {
  const size_t count = p.left < p.cols ? std::min(width, p.cols - p.left) : 0;
  for (size_t y = 0; y < height && p.top + y < p.rows; y++) row(y, count);
}

// Copies planes, padded, as [channels, step, rows, columns of a part]: columns that lie `step` apart become neighbours.
inline void pad_planes(float* out, const float* planes, size_t channels, size_t height, size_t width, const Padding& p,
                       size_t step = 1) {
  const size_t cols = (p.cols + step - 1) / step, part = p.rows * cols;
  std::memset(out, 0, channels * step * part * sizeof(float));
  for (size_t c = 0; c < channels; c++, out += step * part, planes += height * width) {
    for_each_inside_row(p, height, width, [&](size_t y, size_t count) {
      const float* from = planes + y * width;
      float* to = out + (p.top + y) * cols;
      if (step == 1) {
        std::memcpy(to + p.left, from, count * sizeof(float));
        return;
      }
      for (size_t first = 0; first < std::min(step, count); first++) {
        float* next = to + (p.left + first) % step * part + (p.left + first) / step;
        for (size_t x = first; x < count; x += step) *next++ = from[x];
      }
    });
  }
}

// Copies planes, padded, as [rows, cols, channels].
inline void pad_channels_last(float* out, const float* planes, size_t channels, size_t height, size_t width,
                              const Padding& p) {
  std::memset(out, 0, channels * p.rows * p.cols * sizeof(float));
  for_each_inside_row(p, height, width, [&](size_t y, size_t count) {
    transpose_floats(out + ((p.top + y) * p.cols + p.left) * channels, channels, planes + y * width, count, channels,
                     height * width);
  });
}

struct Axis {
  size_t step, count;
};

// Writes the offsets of all elements of [a, b, c] in row-major order.
inline void fill_offsets(size_t* out, Axis a, Axis b, Axis c) {
  for (size_t i = 0; i < a.count; i++) {
    for (size_t j = 0; j < b.count; j++) {
      for (size_t k = 0; k < c.count; k++) *out++ = i * a.step + j * b.step + k * c.step;
    }
  }
}

// Working space of one thread's convolutions.
struct ConvSpace {
  PackBuffer<float> image, weights, result;
  PackBuffer<size_t> outer, inner;
};
inline ConvSpace& conv_space() {
  thread_local ConvSpace space;
  return space;
}

// Returns the number of units, of `products` multiplications each, that are worth a thread.
inline size_t conv_grain(size_t products) { return kGrainProducts / (products + 1) + 1; }

inline size_t taps_of(const ConvSizes& s) { return s.in_channels * s.window.kernel_height * s.window.kernel_width; }

void conv2d_floats(float* out, const float* x, const float* weight, const ConvSizes& s) {
  const Window& w = s.window;
  const Padding padded = padding_of(w);
  const size_t taps = taps_of(s), pixels = w.out_height * w.out_width, step = w.stride_x;
  const size_t cols = (padded.cols + step - 1) / step, part = padded.rows * cols;
  ConvSpace& space = conv_space();
  size_t* outer = space.outer.reserve(pixels);
  size_t* inner = space.inner.reserve(taps);
  fill_offsets(outer, {0, 1}, {w.stride_y * cols, w.out_height}, {1, w.out_width});
  for (size_t row = 0, i = 0; row < s.in_channels * w.kernel_height; row++) {
    const size_t begin = row / w.kernel_height * step * part + row % w.kernel_height * w.dilation_y * cols;
    for (size_t x = 0; x < w.kernel_width * w.dilation_x; x += w.dilation_x)
      inner[i++] = begin + x % step * part + x / step;
  }
  parallel_for(s.batch * s.groups, conv_grain(s.out_channels * pixels * taps), [&](size_t begin, size_t end) {
    float* image = conv_space().image.reserve(s.in_channels * step * part);
    for (size_t i = begin; i < end; i++) {
      pad_planes(image, x + i * s.in_channels * w.height * w.width, s.in_channels, w.height, w.width, padded, step);
      const Matrix weights{weight + i % s.groups * s.out_channels * taps, taps, true};
      multiply(Product<Gathered>{weights,
                                 {image, outer, inner},
                                 s.out_channels,
                                 pixels,
                                 taps,
                                 pixels <= kFewColumns,
                                 false,
                                 out + i * s.out_channels * pixels,
                                 false});
    }
  });
}

// Computes to[co, c, tap] (+)= from[co, tap, c].
inline void add_channels_first(float* to, const float* from, size_t out_channels, size_t channels, size_t taps,
                               bool accumulate) {
  for (size_t co = 0; co < out_channels; co++, from += channels * taps) {
    for (size_t c = 0; c < channels; c++) {
      for (size_t t = 0; t < taps; t++, to++) *to = (accumulate ? *to : 0) + from[t * channels + c];
    }
  }
}

void conv2d_grad_weight_floats(float* grad_weight, const float* grad, const float* x, const ConvSizes& s,
                               bool accumulate) {
  const Window& w = s.window;
  const Padding padded = padding_of(w);
  const size_t taps = taps_of(s), pixels = w.out_height * w.out_width, channels = s.in_channels;
  ConvSpace& space = conv_space();
  float* sums = space.result.reserve(s.out_channels * taps);
  size_t* outer = space.outer.reserve(taps);
  size_t* inner = space.inner.reserve(pixels);
  const size_t row = padded.cols * channels;
  fill_offsets(outer, {w.dilation_y * row, w.kernel_height}, {w.dilation_x * channels, w.kernel_width}, {1, channels});
  fill_offsets(inner, {0, 1}, {w.stride_y * row, w.out_height}, {w.stride_x * channels, w.out_width});
  for (size_t g = 0; g < s.groups; g++) {
    if (s.batch == 0) std::fill_n(sums, s.out_channels * taps, 0.0f);
    parallel_for(s.out_channels, conv_grain(s.batch * pixels * taps), [&](size_t begin, size_t end) {
      float* image = conv_space().image.reserve(channels * padded.rows * padded.cols);
      for (size_t n = 0; n < s.batch; n++) {
        const size_t i = n * s.groups + g;
        pad_channels_last(image, x + i * channels * w.height * w.width, channels, w.height, w.width, padded);
        const Matrix grads{grad + (i * s.out_channels + begin) * pixels, pixels, true};
        multiply(Product<Gathered>{
            grads, {image, outer, inner}, end - begin, taps, pixels, true, false, sums + begin * taps, n > 0});
      }
    });
    add_channels_first(grad_weight + g * s.out_channels * taps, sums, s.out_channels, channels, taps / channels,
                       accumulate);
  }
}

// One axis of one phase of the input's gradient. Pixels phase, phase + stride, … are reached through the taps first,
// first + step, … of the kernel. Through tap t, position i + (phase + pad - t · dilation) / stride of the output
// reaches the i-th of these pixels; the number added to i is the shift of the tap.
struct PhaseAxis {
  size_t phase, pixels;
  size_t first, step, taps;
  size_t base;  // shift of the first tap, in the padded output; each further tap is `back` less
  size_t back;

  // margin: zeros in front of the output, so that no position is negative.
  PhaseAxis(size_t phase, size_t size, size_t kernel, size_t stride, size_t dilation, size_t pad, size_t margin)
      : phase(phase), pixels((size - phase + stride - 1) / stride), first(0), step(1), taps(0), base(0), back(0) {
    const auto fits = [&](size_t tap) { return (phase + pad + tap * dilation * (stride - 1)) % stride == 0; };
    while (first < kernel && !fits(first)) first++;
    if (first >= kernel) return;
    while (step < stride && !fits(first + step)) step++;
    taps = (kernel - first + step - 1) / step;
    back = step * dilation / stride;
    base = (phase + pad + margin * stride - first * dilation) / stride;
  }
};

// Computes to[x * step] (+)= from[x].
inline void spread_row(float* to, const float* from, size_t count, size_t step, bool accumulate) {
  for (size_t x = 0; x < count; x++) to[x * step] = (accumulate ? to[x * step] : 0) + from[x];
}

// Computes to[2 * x] (+)= even[x] and to[2 * x + 1] (+)= odd[x].
template <size_t... I>
inline void join_row(float* to, const float* even, const float* odd, size_t count, bool accumulate,
                     std::index_sequence<I...>) {
  size_t x = 0;
  for (; x + kLanes <= count; x += kLanes, to += 2 * kLanes) {
    const Vec a = load(even + x), b = load(odd + x);
    Vec low = __builtin_shufflevector(a, b, (static_cast<int>(I) / 2 + (I % 2 ? kLanes : 0))...);
    Vec high = __builtin_shufflevector(a, b, (static_cast<int>(I) / 2 + kLanes / 2 + (I % 2 ? kLanes : 0))...);
    if (accumulate) {
      low += load(to);
      high += load(to + kLanes);
    }
    store(to, low);
    store(to + kLanes, high);
  }
  spread_row(to, even + x, count - x, 2, accumulate);
  spread_row(to + 1, odd + x, count - x, 2, accumulate);
}

// Copies to[ci, co, ky, kx] = weight[co, ci, ky, kx] for the taps of a phase.
inline void phase_weights(float* to, const float* weight, const ConvSizes& s, const PhaseAxis& ys,
                          const PhaseAxis& xs) {
  const Window& w = s.window;
  for (size_t ci = 0; ci < s.in_channels; ci++) {
    for (size_t co = 0; co < s.out_channels; co++) {
      const float* kernel = weight + (co * s.in_channels + ci) * w.kernel_height * w.kernel_width;
      for (size_t y = 0; y < ys.taps; y++) {
        const float* row = kernel + (ys.first + y * ys.step) * w.kernel_width;
        for (size_t x = 0; x < xs.taps; x++) *to++ = row[xs.first + x * xs.step];
      }
    }
  }
}

// Prepares the products of one phase: its weights, and the offsets of its pixels and taps. Each pixel and each tap
// belongs to one phase, so the tables of all phases together are as long as those of one convolution without strides.
inline void prepare_phase(float* weights, size_t* outer, size_t* inner, const float* weight, const ConvSizes& s,
                          const PhaseAxis& ys, const PhaseAxis& xs, const Padding& padded) {
  const size_t plane = padded.rows * padded.cols;
  phase_weights(weights, weight, s, ys, xs);
  fill_offsets(outer, {0, 1}, {padded.cols, ys.pixels}, {1, xs.pixels});
  for (size_t co = 0; co < s.out_channels; co++) {
    for (size_t y = 0; y < ys.taps; y++) {
      for (size_t x = 0; x < xs.taps; x++)
        *inner++ = co * plane + (ys.base - y * ys.back) * padded.cols + xs.base - x * xs.back;
    }
  }
}

// Calls use(ys, xs, begin of its weights, begin of its pixels, begin of its taps) for all phases, row by row.
template <class Use>
inline void for_each_phase(const ConvSizes& s, const Padding& padded, Use use) {
  const Window& w = s.window;
  size_t weights = 0, outer = 0, inner = 0;
  for (size_t y = 0; y < std::min(w.stride_y, w.height); y++) {
    const PhaseAxis ys(y, w.height, w.kernel_height, w.stride_y, w.dilation_y, w.pad_top, padded.top);
    for (size_t x = 0; x < std::min(w.stride_x, w.width); x++) {
      const PhaseAxis xs(x, w.width, w.kernel_width, w.stride_x, w.dilation_x, w.pad_left, padded.left);
      use(ys, xs, weights, outer, inner);
      const size_t taps = s.out_channels * ys.taps * xs.taps;
      weights += s.in_channels * taps;
      outer += ys.pixels * xs.pixels;
      inner += taps;
    }
  }
}

// Moves the results of all phases of one image, which lie one behind the other as [channel, y, x], to their pixels.
inline void join_phases(float* to, const float* results, const ConvSizes& s, const Padding& padded, bool accumulate) {
  const Window& w = s.window;
  const size_t plane = w.height * w.width;
  const bool is_pair = w.stride_x == 2 && w.width % 2 == 0;
  for_each_phase(s, padded, [&](const PhaseAxis& ys, const PhaseAxis& xs, size_t, size_t outer, size_t) {
    if (is_pair && xs.phase == 1) return;  // joined with the phase before
    const size_t pixels = ys.pixels * xs.pixels;
    const float* from = results + outer * s.in_channels;
    for (size_t c = 0; c < s.in_channels; c++) {
      for (size_t y = 0; y < ys.pixels; y++, from += xs.pixels) {
        float* row = to + c * plane + (ys.phase + y * w.stride_y) * w.width + xs.phase;
        if (is_pair)
          join_row(row, from, from + s.in_channels * pixels, xs.pixels, accumulate, std::make_index_sequence<kLanes>{});
        else
          spread_row(row, from, xs.pixels, w.stride_x, accumulate);
      }
    }
  });
}

void conv2d_grad_input_floats(float* grad_x, const float* grad, const float* weight, const ConvSizes& s,
                              bool accumulate) {
  const Window& w = s.window;
  // Returns the number of positions before the first one of the output to which taps shift.
  const auto margin_of = [](size_t kernel, size_t dilation, size_t pad, size_t stride) {
    const size_t reach = (kernel - 1) * dilation;
    return reach > pad ? (reach - pad) / stride : 0;
  };
  Padding padded;
  padded.top = margin_of(w.kernel_height, w.dilation_y, w.pad_top, w.stride_y);
  padded.left = margin_of(w.kernel_width, w.dilation_x, w.pad_left, w.stride_x);
  padded.rows = padded.top + (w.height - 1 + w.pad_top) / w.stride_y + 1;
  padded.cols = padded.left + (w.width - 1 + w.pad_left) / w.stride_x + 1;
  const size_t plane = padded.rows * padded.cols, in_plane = w.height * w.width, out_plane = w.out_height * w.out_width;
  const size_t kernel = w.kernel_height * w.kernel_width;
  const bool is_direct = w.stride_y == 1 && w.stride_x == 1;
  ConvSpace& space = conv_space();
  float* weights = space.weights.reserve(s.in_channels * s.out_channels * kernel);
  size_t* outer = space.outer.reserve(in_plane);
  size_t* inner = space.inner.reserve(s.out_channels * kernel);
  for (size_t group = 0; group < s.groups; group++) {
    for_each_phase(s, padded, [&](const PhaseAxis& ys, const PhaseAxis& xs, size_t at, size_t pixel, size_t tap) {
      prepare_phase(weights + at, outer + pixel, inner + tap, weight + group * s.out_channels * taps_of(s), s, ys, xs,
                    padded);
    });
    parallel_for(s.batch, conv_grain(taps_of(s) * s.out_channels * out_plane), [&](size_t begin, size_t end) {
      float* image = conv_space().image.reserve(s.out_channels * plane);
      float* results = is_direct ? nullptr : conv_space().result.reserve(s.in_channels * in_plane);
      for (size_t n = begin; n < end; n++) {
        const size_t i = n * s.groups + group;
        float* to = grad_x + i * s.in_channels * in_plane;
        pad_planes(image, grad + i * s.out_channels * out_plane, s.out_channels, w.out_height, w.out_width, padded);
        for_each_phase(s, padded, [&](const PhaseAxis& ys, const PhaseAxis& xs, size_t at, size_t pixel, size_t tap) {
          const size_t taps = s.out_channels * ys.taps * xs.taps, pixels = ys.pixels * xs.pixels;
          float* result = is_direct ? to : results + pixel * s.in_channels;
          if (taps == 0) return void(std::fill_n(result, s.in_channels * pixels, 0.0f));
          multiply(Product<Gathered>{{weights + at, taps, true},
                                     {image, outer + pixel, inner + tap},
                                     s.in_channels,
                                     pixels,
                                     taps,
                                     pixels <= kFewColumns,
                                     false,
                                     result,
                                     is_direct && accumulate});
        });
        if (!is_direct) join_phases(to, results, s, padded, accumulate);
      }
    });
  }
}

// Returns the positions of a window at which its element `tap` rows (or columns) from its begin lies inside the plane.
inline Range inside(size_t size, size_t out_size, size_t stride, size_t tap, size_t pad) {
  const size_t begin = tap >= pad ? 0 : (pad - tap + stride - 1) / stride;
  const size_t end = size + pad > tap ? std::min(out_size, (size + pad - tap - 1) / stride + 1) : 0;
  return {begin, end > begin ? end - begin : 0};
}

// float64: calls row(weight, out, x, count, step) for every weight and every row of the output that it reaches: element
// j of out meets x[j * step]. The arguments are offsets.
template <class Row>
inline void for_each_conv_row(const ConvSizes& s, Row row) {
  const Window& w = s.window;
  for (size_t i = 0; i < s.batch * s.groups; i++) {
    for (size_t co = 0; co < s.out_channels; co++) {
      size_t at = (i % s.groups * s.out_channels + co) * taps_of(s);
      for (size_t ci = 0; ci < s.in_channels; ci++) {
        for (size_t ky = 0; ky < w.kernel_height; ky++) {
          const Range ys = inside(w.height, w.out_height, w.stride_y, ky * w.dilation_y, w.pad_top);
          for (size_t kx = 0; kx < w.kernel_width; kx++, at++) {
            const Range xs = inside(w.width, w.out_width, w.stride_x, kx * w.dilation_x, w.pad_left);
            if (xs.size == 0) continue;
            for (size_t oy = ys.begin; oy < ys.begin + ys.size; oy++) {
              const size_t y = oy * w.stride_y + ky * w.dilation_y - w.pad_top;
              const size_t x = xs.begin * w.stride_x + kx * w.dilation_x - w.pad_left;
              row(at, ((i * s.out_channels + co) * w.out_height + oy) * w.out_width + xs.begin,
                  ((i * s.in_channels + ci) * w.height + y) * w.width + x, xs.size, w.stride_x);
            }
          }
        }
      }
    }
  }
}

void conv2d(const Conv2d& s) {
  if (s.dtype != DType::Float64) {
    return conv2d_floats(static_cast<float*>(s.out), static_cast<const float*>(s.x),
                         static_cast<const float*>(s.weight), s);
  }
  double* to = static_cast<double*>(s.out);
  const double *from = static_cast<const double*>(s.x), *w = static_cast<const double*>(s.weight);
  std::fill_n(to, s.batch * s.groups * s.out_channels * s.window.out_height * s.window.out_width, 0.0);
  for_each_conv_row(s, [&](size_t at, size_t o, size_t i, size_t count, size_t step) {
    for (size_t j = 0; j < count; j++) to[o + j] += w[at] * from[i + j * step];
  });
}

void conv2d_grad_input(const Conv2dGradInput& s) {
  if (s.dtype != DType::Float64) {
    return conv2d_grad_input_floats(static_cast<float*>(s.grad_x), static_cast<const float*>(s.grad),
                                    static_cast<const float*>(s.weight), s, s.accumulate);
  }
  double* to = static_cast<double*>(s.grad_x);
  const double *from = static_cast<const double*>(s.grad), *w = static_cast<const double*>(s.weight);
  if (!s.accumulate) std::fill_n(to, s.batch * s.groups * s.in_channels * s.window.height * s.window.width, 0.0);
  for_each_conv_row(s, [&](size_t at, size_t o, size_t i, size_t count, size_t step) {
    for (size_t j = 0; j < count; j++) to[i + j * step] += w[at] * from[o + j];
  });
}

void conv2d_grad_weight(const Conv2dGradWeight& s) {
  if (s.dtype != DType::Float64) {
    return conv2d_grad_weight_floats(static_cast<float*>(s.grad_weight), static_cast<const float*>(s.grad),
                                     static_cast<const float*>(s.x), s, s.accumulate);
  }
  double* to = static_cast<double*>(s.grad_weight);
  const double *g = static_cast<const double*>(s.grad), *from = static_cast<const double*>(s.x);
  if (!s.accumulate) std::fill_n(to, s.groups * s.out_channels * taps_of(s), 0.0);
  for_each_conv_row(s, [&](size_t at, size_t o, size_t i, size_t count, size_t step) {
    double sum = 0;
    for (size_t j = 0; j < count; j++) sum += g[o + j] * from[i + j * step];
    to[at] += sum;
  });
}

}  // namespace ringwise::tensor::RINGWISE_LEVEL
