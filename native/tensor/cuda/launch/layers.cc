// Convolution, pooling and sums by channel: cuDNN, or the host's side of kernels/layers.cu.
#include <stdexcept>

#include "tensor/cuda/launch/kernels.h"
#include "tensor/cuda/launch/launch.h"
#include "tensor/cuda/libraries/dnn_kernels.h"

namespace ringwise::tensor::cuda {

namespace {

KernelId by_width(DType dtype, KernelId of_float, KernelId of_double) {
  return dtype == DType::Float64 ? of_double : of_float;
}

int64_t wide(size_t size) { return static_cast<int64_t>(size); }

WindowArguments window_of(const Window& w) {
  return {wide(w.height),        wide(w.width),        wide(w.out_height), wide(w.out_width),
          wide(w.kernel_height), wide(w.kernel_width), wide(w.stride_y),   wide(w.stride_x),
          wide(w.dilation_y),    wide(w.dilation_x),   wide(w.pad_top),    wide(w.pad_left)};
}

ConvArguments conv_of(void* out, const void* a, const void* b, const ConvSizes& s, bool accumulate) {
  return {
      out,        a, b, wide(s.batch), wide(s.groups), wide(s.in_channels), wide(s.out_channels), window_of(s.window),
      accumulate, 0};
}

size_t images(const ConvSizes& s) { return s.batch * s.groups; }

/// Launches `count` blocks, whose threads share `work`.
template <class Arguments>
void launch_blocks(size_t count, size_t work, KernelId kernel, const Arguments& x) {
  if (count > INT32_MAX) throw std::invalid_argument("cuda: a launch cannot have more than 2^31 blocks.");
  if (count > 0) current_device().launch(kernel, {static_cast<unsigned>(count)}, block_threads(work), x);
}

PoolArguments boxes_of(void* out, const void* a, const int64_t* bins, const PoolSizes& s) {
  PoolArguments x{};
  x.out = out;
  x.a = a;
  x.bins = bins;
  x.planes = wide(s.planes);
  x.window.height = wide(s.height);
  x.window.width = wide(s.width);
  x.window.out_height = wide(s.out_height);
  x.window.out_width = wide(s.out_width);
  return x;
}

}  // namespace

void conv2d(const Conv2d& s) {
  if (convolve_by_library(Convolution::Forward, s.dtype, const_cast<void*>(s.x), const_cast<void*>(s.weight), s.out, s,
                          false))
    return;
  launch_over(images(s) * s.out_channels * s.window.out_height * s.window.out_width,
              by_stored(s.dtype, RINGWISE_STORED(conv2d)), conv_of(s.out, s.x, s.weight, s, false));
}

void conv2d_grad_input(const Conv2dGradInput& s) {
  if (convolve_by_library(Convolution::GradInput, s.dtype, s.grad_x, const_cast<void*>(s.weight),
                          const_cast<void*>(s.grad), s, s.accumulate))
    return;
  launch_over(images(s) * s.in_channels * s.window.height * s.window.width,
              by_stored(s.dtype, RINGWISE_STORED(conv2d_grad_input)),
              conv_of(s.grad_x, s.grad, s.weight, s, s.accumulate));
}

void conv2d_grad_weight(const Conv2dGradWeight& s) {
  if (convolve_by_library(Convolution::GradWeight, s.dtype, const_cast<void*>(s.x), s.grad_weight,
                          const_cast<void*>(s.grad), s, s.accumulate))
    return;
  launch_blocks(s.groups * s.out_channels * s.in_channels * s.window.kernel_height * s.window.kernel_width,
                s.batch * s.window.out_height * s.window.out_width,
                by_stored(s.dtype, RINGWISE_STORED(conv2d_grad_weight)),
                conv_of(s.grad_weight, s.grad, s.x, s, s.accumulate));
}

void max_pool(const MaxPool& given) {
  PoolArguments x{};
  x.out = given.out;
  x.positions = given.positions;
  x.a = given.a;
  x.planes = wide(given.planes);
  x.window = window_of(given.window);
  launch_over(given.planes * given.window.out_height * given.window.out_width,
              by_stored(given.dtype, RINGWISE_STORED(max_pool)), x);
}

void avg_pool(const AvgPool& s) {
  launch_over(s.planes * s.out_height * s.out_width, by_stored(s.dtype, RINGWISE_STORED(avg_pool)),
              boxes_of(s.out, s.a, s.bins, s));
}

void avg_pool_grad(const AvgPoolGrad& s) {
  launch_over(s.planes * s.height * s.width, by_stored(s.dtype, RINGWISE_STORED(avg_pool_grad)),
              boxes_of(s.grad_in, s.grad, s.bins, s));
}

void channel_moments(const ChannelMoments& x) {
  launch_blocks(x.channels, x.outer * x.inner,
                by_width(x.dtype, KernelId::channel_moments_float, KernelId::channel_moments_double),
                ChannelArguments{x.out, x.a, nullptr, nullptr, wide(x.outer), wide(x.channels), wide(x.inner)});
}

void channel_grad_sums(const ChannelGradSums& x) {
  launch_blocks(x.channels, x.outer * x.inner,
                by_width(x.dtype, KernelId::channel_grad_sums_float, KernelId::channel_grad_sums_double),
                ChannelArguments{x.out, x.a, x.grad, x.mean, wide(x.outer), wide(x.channels), wide(x.inner)});
}

}  // namespace ringwise::tensor::cuda
