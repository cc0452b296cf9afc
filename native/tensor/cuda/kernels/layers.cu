// Convolution and pooling, with one thread or block per element of the result. Supports all shapes. Convolutions serve
// where cuDNN does not; for them, elements of a window outside of its plane count as 0.
#include "tensor/cuda/kernels/shared/functions.cuh"

namespace ringwise::tensor::cuda {

/// Calls body(offset in the image's plane, offset in the kernel) for each element under the window at (oy, ox).
template <class Body>
__device__ inline void for_each_tap(const WindowArguments& w, int64_t oy, int64_t ox, Body body) {
  for (int64_t ky = 0; ky < w.kernel_height; ky++) {
    const int64_t y = oy * w.stride_y - w.pad_top + ky * w.dilation_y;
    if (y < 0 || y >= w.height) continue;
    for (int64_t kx = 0; kx < w.kernel_width; kx++) {
      const int64_t x = ox * w.stride_x - w.pad_left + kx * w.dilation_x;
      if (x >= 0 && x < w.width) body(y * w.width + x, ky * w.kernel_width + kx);
    }
  }
}

/// Returns the position of the output whose window has its tap k at `at`, or -1 if there is none.
__device__ inline int64_t covering(int64_t at, int64_t k, int64_t stride, int64_t dilation, int64_t pad,
                                   int64_t count) {
  const int64_t begin = at + pad - k * dilation;
  if (begin < 0 || begin % stride != 0) return -1;
  return begin / stride < count ? begin / stride : -1;
}

/// One thread per element of the output. Elements are stored as E and multiplied as T.
template <class E, class T>
__device__ void conv2d(const ConvArguments& c) {
  const WindowArguments& w = c.window;
  const int64_t area = w.out_height * w.out_width, plane = w.height * w.width, taps = w.kernel_height * w.kernel_width;
  for_each_of_grid(c.batch * c.groups * c.out_channels * area, [&](int64_t i) {
    const int64_t channel = i / area, at = i - channel * area, oy = at / w.out_width, ox = at - oy * w.out_width;
    const int64_t image = channel / c.out_channels, group = image % c.groups;
    const E* x = static_cast<const E*>(c.a) + image * c.in_channels * plane;
    const E* weight =
        static_cast<const E*>(c.b) + (group * c.out_channels + channel % c.out_channels) * c.in_channels * taps;
    T sum = 0;
    for (int64_t in = 0; in < c.in_channels; in++) {
      for_each_tap(w, oy, ox, [&](int64_t pixel, int64_t tap) {
        sum += read_as<T>(x[in * plane + pixel]) * read_as<T>(weight[in * taps + tap]);
      });
    }
    static_cast<E*>(c.out)[i] = write_as<E>(sum);
  });
}

/// One thread per element of the input. a: the gradient of the output; b: the weight.
template <class E, class T>
__device__ void conv2d_grad_input(const ConvArguments& c) {
  const WindowArguments& w = c.window;
  const int64_t area = w.out_height * w.out_width, plane = w.height * w.width, taps = w.kernel_height * w.kernel_width;
  for_each_of_grid(c.batch * c.groups * c.in_channels * plane, [&](int64_t i) {
    const int64_t channel = i / plane, at = i - channel * plane, y = at / w.width, x = at - y * w.width;
    const int64_t image = channel / c.in_channels, in = channel - image * c.in_channels, group = image % c.groups;
    const E* grad = static_cast<const E*>(c.a) + image * c.out_channels * area;
    const E* weight = static_cast<const E*>(c.b) + group * c.out_channels * c.in_channels * taps + in * taps;
    T sum = 0;
    for (int64_t ky = 0; ky < w.kernel_height; ky++) {
      const int64_t oy = covering(y, ky, w.stride_y, w.dilation_y, w.pad_top, w.out_height);
      if (oy < 0) continue;
      for (int64_t kx = 0; kx < w.kernel_width; kx++) {
        const int64_t ox = covering(x, kx, w.stride_x, w.dilation_x, w.pad_left, w.out_width);
        if (ox < 0) continue;
        const int64_t pixel = oy * w.out_width + ox, tap = ky * w.kernel_width + kx;
        for (int64_t o = 0; o < c.out_channels; o++)
          sum += read_as<T>(grad[o * area + pixel]) * read_as<T>(weight[o * c.in_channels * taps + tap]);
      }
    }
    E& to = static_cast<E*>(c.out)[i];
    to = write_as<E>(c.accumulate ? read_as<T>(to) + sum : sum);
  });
}

/// One block per element of the weight. a: the gradient of the output; b: the input.
template <class E, class T>
__device__ void conv2d_grad_weight(const ConvArguments& c) {
  __shared__ T shared[kThreads];
  const WindowArguments& w = c.window;
  const int64_t area = w.out_height * w.out_width, plane = w.height * w.width, taps = w.kernel_height * w.kernel_width;
  const int64_t i = blockIdx.x, tap = i % taps, in = i / taps % c.in_channels,
                o = i / taps / c.in_channels % c.out_channels;
  const int64_t group = i / taps / c.in_channels / c.out_channels, ky = tap / w.kernel_width, kx = tap % w.kernel_width;
  T sum = 0;
  for (int64_t at = threadIdx.x; at < c.batch * area; at += blockDim.x) {
    const int64_t image = at / area * c.groups + group, pixel = at % area;
    const int64_t y = pixel / w.out_width * w.stride_y - w.pad_top + ky * w.dilation_y;
    const int64_t x = pixel % w.out_width * w.stride_x - w.pad_left + kx * w.dilation_x;
    if (y < 0 || y >= w.height || x < 0 || x >= w.width) continue;
    sum += read_as<T>(static_cast<const E*>(c.a)[(image * c.out_channels + o) * area + pixel]) *
           read_as<T>(static_cast<const E*>(c.b)[(image * c.in_channels + in) * plane + y * w.width + x]);
  }
  sum = over_block(sum, shared, [](T a, T b) { return a + b; });
  if (threadIdx.x == 0) {
    E& to = static_cast<E*>(c.out)[i];
    to = write_as<E>(c.accumulate ? read_as<T>(to) + sum : sum);
  }
}

/// One thread per window. The first of equal elements is taken; NaN is the largest, and the last NaN is taken.
template <class E, class T>
__device__ void max_pool(const PoolArguments& p) {
  const WindowArguments& w = p.window;
  const int64_t area = w.out_height * w.out_width;
  for_each_of_grid(p.planes * area, [&](int64_t i) {
    const int64_t plane = i / area, at = i - plane * area;
    const E* a = static_cast<const E*>(p.a) + plane * w.height * w.width;
    T best = -std::numeric_limits<T>::infinity();
    int64_t found = -1, first = -1;
    for_each_tap(w, at / w.out_width, at % w.out_width, [&](int64_t pixel, int64_t) {
      if (first < 0) first = pixel;
      const T value = read_as<T>(a[pixel]);
      if ((value > best) | (value != value)) {
        best = value;
        found = pixel;
      }
    });
    static_cast<E*>(p.out)[i] = write_as<E>(best);
    p.positions[i] = found >= 0 ? found : first >= 0 ? first : 0;
  });
}

struct Bin {
  int64_t begin, end, divisor;
};

/// One thread per box.
template <class E>
__device__ void avg_pool(const PoolArguments& p) {
  const WindowArguments& w = p.window;
  const Bin *rows = reinterpret_cast<const Bin*>(p.bins), *cols = rows + w.out_height;
  const int64_t area = w.out_height * w.out_width;
  for_each_of_grid(p.planes * area, [&](int64_t i) {
    const int64_t plane = i / area, at = i - plane * area;
    const Bin ys = rows[at / w.out_width], xs = cols[at % w.out_width];
    const E* a = static_cast<const E*>(p.a) + plane * w.height * w.width;
    double sum = 0;
    for (int64_t y = ys.begin; y < ys.end; y++) {
      for (int64_t x = xs.begin; x < xs.end; x++) sum += read_as<double>(a[y * w.width + x]);
    }
    static_cast<E*>(p.out)[i] = write_as<E>(sum / static_cast<double>(ys.divisor * xs.divisor));
  });
}

/// One thread per element of the input, which looks for the boxes that cover it.
template <class E, class T>
__device__ void avg_pool_grad(const PoolArguments& p) {
  const WindowArguments& w = p.window;
  const Bin *rows = reinterpret_cast<const Bin*>(p.bins), *cols = rows + w.out_height;
  const int64_t plane_size = w.height * w.width, area = w.out_height * w.out_width;
  for_each_of_grid(p.planes * plane_size, [&](int64_t i) {
    const int64_t plane = i / plane_size, at = i - plane * plane_size, y = at / w.width, x = at - y * w.width;
    const E* grad = static_cast<const E*>(p.a) + plane * area;
    T sum = 0;
    for (int64_t oy = 0; oy < w.out_height; oy++) {
      if (y < rows[oy].begin || y >= rows[oy].end) continue;
      for (int64_t ox = 0; ox < w.out_width; ox++) {
        if (x < cols[ox].begin || x >= cols[ox].end) continue;
        sum += read_as<T>(grad[oy * w.out_width + ox]) / static_cast<T>(rows[oy].divisor * cols[ox].divisor);
      }
    }
    static_cast<E*>(p.out)[i] = write_as<E>(sum);
  });
}

#define CONVOLUTIONS(suffix, E, T)                                                                   \
  RINGWISE_KERNEL(conv2d_##suffix, ConvArguments) { conv2d<E, T>(arguments); }                       \
  RINGWISE_KERNEL(conv2d_grad_input_##suffix, ConvArguments) { conv2d_grad_input<E, T>(arguments); } \
  RINGWISE_BLOCK_KERNEL(conv2d_grad_weight_##suffix, ConvArguments) { conv2d_grad_weight<E, T>(arguments); }
#define POOLS(suffix, E, T)                                                        \
  RINGWISE_KERNEL(max_pool_##suffix, PoolArguments) { max_pool<E, T>(arguments); } \
  RINGWISE_KERNEL(avg_pool_##suffix, PoolArguments) { avg_pool<E>(arguments); }    \
  RINGWISE_KERNEL(avg_pool_grad_##suffix, PoolArguments) { avg_pool_grad<E, T>(arguments); }
CONVOLUTIONS(float, float, float)
CONVOLUTIONS(double, double, double)
CONVOLUTIONS(half, Half, float)
CONVOLUTIONS(bfloat, BFloat, float)
POOLS(float, float, float)
POOLS(double, double, double)
POOLS(half, Half, float)
POOLS(bfloat, BFloat, float)

}  // namespace ringwise::tensor::cuda
