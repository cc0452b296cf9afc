// The kernels of layers as JavaScript calls them: convolution, pooling and sums by channel. As tensor_kernels.cc.
#include <stdexcept>

#include "node/tensor/tensor_call.h"

namespace ringwise::node {

namespace {

/// Twelve listed sizes, in the order of tensor::Window.
tensor::Window window_at(Call& call, size_t i) {
  const tensor::Window w{call.listed(i),     call.listed(i + 1), call.listed(i + 2),  call.listed(i + 3),
                         call.listed(i + 4), call.listed(i + 5), call.listed(i + 6),  call.listed(i + 7),
                         call.listed(i + 8), call.listed(i + 9), call.listed(i + 10), call.listed(i + 11)};
  for (const size_t size : {w.height, w.width, w.out_height, w.out_width, w.kernel_height, w.kernel_width, w.stride_y,
                            w.stride_x, w.dilation_y, w.dilation_x}) {
    if (size == 0) throw std::invalid_argument("window: a size is 0. This is a bug in @ringwise/tensor.");
  }
  return w;
}
size_t volume(size_t a, size_t b, size_t c) { return area(area(a, b), c); }
size_t in_area(const tensor::Window& w) { return area(w.height, w.width); }
size_t out_area(const tensor::Window& w) { return area(w.out_height, w.out_width); }

/// Listed: batch, groups, input and output channels of a group, and the window.
struct Conv {
  explicit Conv(Call& call) : s{call.listed(0), call.listed(1), call.listed(2), call.listed(3), window_at(call, 4)} {
    const size_t images = area(s.batch, s.groups), kernel = area(s.window.kernel_height, s.window.kernel_width);
    x = volume(images, s.in_channels, in_area(s.window));
    out = volume(images, s.out_channels, out_area(s.window));
    weight = volume(area(s.groups, s.out_channels), s.in_channels, kernel);
    if (s.groups == 0 || s.in_channels == 0 || s.out_channels == 0) throw std::invalid_argument("conv2d: no channels.");
  }
  tensor::ConvSizes s;
  size_t x, out, weight;  // elements
};

/// (); operands: output, input, weight
void conv2d(Call& call) {
  const Conv c(call);
  const DType dtype = stored_in(call);
  call.kernels().conv2d(dtype, call.dense(0, dtype, c.out), call.dense(1, dtype, c.x), call.dense(2, dtype, c.weight),
                        c.s);
}

/// (accumulate); operands: gradient of the input, of the output, weight
void conv2d_grad_input(Call& call) {
  const Conv c(call);
  const DType dtype = stored_in(call);
  call.kernels().conv2d_grad_input(dtype, call.dense(0, dtype, c.x), call.dense(1, dtype, c.out),
                                   call.dense(2, dtype, c.weight), c.s, call.flag(0));
}

/// (accumulate); operands: gradient of the weight, of the output, input
void conv2d_grad_weight(Call& call) {
  const Conv c(call);
  const DType dtype = stored_in(call);
  call.kernels().conv2d_grad_weight(dtype, call.dense(0, dtype, c.weight), call.dense(1, dtype, c.out),
                                    call.dense(2, dtype, c.x), c.s, call.flag(0));
}

/// Listed: planes and the window; operands: output, positions, input
void max_pool(Call& call) {
  const size_t planes = call.listed(0);
  const tensor::Window w = window_at(call, 1);
  const DType dtype = float_of(call);
  call.kernels().max_pool(dtype, call.dense(0, dtype, area(planes, out_area(w))),
                          call.indices(1, area(planes, out_area(w))), call.dense(2, dtype, area(planes, in_area(w))),
                          planes, w);
}

/// (planes, height, width, output height, output width); operand 2 has the bins
tensor::PoolSizes pool_sizes(Call& call) {
  return {call.size(0), call.size(1), call.size(2), call.size(3), call.size(4)};
}
const int64_t* bins_of(Call& call, const tensor::PoolSizes& s) {
  const int64_t* bins = call.indices(2, area(3, s.out_height + s.out_width));
  if (!call.is_on_host()) return bins;  // made by the op, as all bins
  for (size_t i = 0; i < s.out_height + s.out_width; i++) {
    const int64_t begin = bins[3 * i], end = bins[3 * i + 1];
    const size_t size = i < s.out_height ? s.height : s.width;
    if (begin < 0 || (begin<end&& static_cast<size_t>(end)> size))
      throw std::out_of_range("avgPool: a bin lies outside.");
  }
  return bins;
}

/// See pool_sizes; operands: output, input, bins
void avg_pool(Call& call) {
  const auto s = pool_sizes(call);
  const DType dtype = float_of(call);
  call.kernels().avg_pool(dtype, call.dense(0, dtype, volume(s.planes, s.out_height, s.out_width)),
                          call.dense(1, dtype, volume(s.planes, s.height, s.width)), bins_of(call, s), s);
}

/// See pool_sizes; operands: gradient of the input, of the output, bins
void avg_pool_grad(Call& call) {
  const auto s = pool_sizes(call);
  const DType dtype = float_of(call);
  call.kernels().avg_pool_grad(dtype, call.dense(0, dtype, volume(s.planes, s.height, s.width)),
                               call.dense(1, dtype, volume(s.planes, s.out_height, s.out_width)), bins_of(call, s), s);
}

/// (outer, channels, inner)
void channel_moments(Call& call) {
  const size_t outer = call.size(0), channels = call.size(1), inner = call.size(2);
  const DType dtype = float_of(call);
  call.kernels().channel_moments(dtype, call.dense(0, dtype, area(2, channels)),
                                 call.dense(1, dtype, volume(outer, channels, inner)), outer, channels, inner);
}

/// (outer, channels, inner); operands: output, gradient, input, means
void channel_grad_sums(Call& call) {
  const size_t outer = call.size(0), channels = call.size(1), inner = call.size(2),
               count = volume(outer, channels, inner);
  const DType dtype = float_of(call);
  call.kernels().channel_grad_sums(dtype, call.dense(0, dtype, area(2, channels)), call.dense(1, dtype, count),
                                   call.dense(2, dtype, count), call.dense(3, dtype, channels), outer, channels, inner);
}

}  // namespace

void define_layers(napi_env env, napi_value exports, TensorState* state) {
  const auto define = [&](const char* name, napi_callback callback) {
    define_function(env, exports, state, name, callback);
  };
  define("conv2d", &entry<conv2d>);
  define("conv2dGradInput", &entry<conv2d_grad_input>);
  define("conv2dGradWeight", &entry<conv2d_grad_weight>);
  define("maxPool", &entry<max_pool>);
  define("avgPool", &entry<avg_pool>);
  define("avgPoolGrad", &entry<avg_pool_grad>);
  define("channelMoments", &entry<channel_moments>);
  define("channelGradSums", &entry<channel_grad_sums>);
}

}  // namespace ringwise::node
