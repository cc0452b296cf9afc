#include "tensor/cuda/launch/layers.h"

#include <stdexcept>

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

/// One block for each of `count`, whose threads share `work`.
template <class Arguments>
void launch_blocks(size_t count, size_t work, KernelId kernel, const Arguments& x) {
  if (count > INT32_MAX) throw std::invalid_argument("cuda: a launch cannot have more than 2^31 blocks.");
  if (count > 0) current_device().launch(kernel, {static_cast<unsigned>(count)}, block_threads(work), x);
}

void conv2d(DType dtype, void* out, const void* x, const void* weight, const ConvSizes& s) {
  if (convolve_by_library(Convolution::Forward, dtype, const_cast<void*>(x), const_cast<void*>(weight), out, s, false))
    return;
  launch_over(images(s) * s.out_channels * s.window.out_height * s.window.out_width,
              by_stored(dtype, RINGWISE_STORED(conv2d)), conv_of(out, x, weight, s, false));
}

void conv2d_grad_input(DType dtype, void* grad_x, const void* grad, const void* weight, const ConvSizes& s,
                       bool accumulate) {
  if (convolve_by_library(Convolution::GradInput, dtype, grad_x, const_cast<void*>(weight), const_cast<void*>(grad), s,
                          accumulate))
    return;
  launch_over(images(s) * s.in_channels * s.window.height * s.window.width,
              by_stored(dtype, RINGWISE_STORED(conv2d_grad_input)), conv_of(grad_x, grad, weight, s, accumulate));
}

void conv2d_grad_weight(DType dtype, void* grad_weight, const void* grad, const void* x, const ConvSizes& s,
                        bool accumulate) {
  if (convolve_by_library(Convolution::GradWeight, dtype, const_cast<void*>(x), grad_weight, const_cast<void*>(grad), s,
                          accumulate))
    return;
  launch_blocks(s.groups * s.out_channels * s.in_channels * s.window.kernel_height * s.window.kernel_width,
                s.batch * s.window.out_height * s.window.out_width,
                by_stored(dtype, RINGWISE_STORED(conv2d_grad_weight)), conv_of(grad_weight, grad, x, s, accumulate));
}

void max_pool(DType dtype, void* out, int64_t* positions, const void* a, size_t planes, const Window& w) {
  PoolArguments x{};
  x.out = out;
  x.positions = positions;
  x.a = a;
  x.planes = wide(planes);
  x.window = window_of(w);
  launch_over(planes * w.out_height * w.out_width, by_width(dtype, KernelId::max_pool_float, KernelId::max_pool_double),
              x);
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

void avg_pool(DType dtype, void* out, const void* a, const int64_t* bins, const PoolSizes& s) {
  launch_over(s.planes * s.out_height * s.out_width,
              by_width(dtype, KernelId::avg_pool_float, KernelId::avg_pool_double), boxes_of(out, a, bins, s));
}

void avg_pool_grad(DType dtype, void* grad_in, const void* grad, const int64_t* bins, const PoolSizes& s) {
  launch_over(s.planes * s.height * s.width,
              by_width(dtype, KernelId::avg_pool_grad_float, KernelId::avg_pool_grad_double),
              boxes_of(grad_in, grad, bins, s));
}

void channel_moments(DType dtype, void* out, const void* a, size_t outer, size_t channels, size_t inner) {
  launch_blocks(channels, outer * inner,
                by_width(dtype, KernelId::channel_moments_float, KernelId::channel_moments_double),
                ChannelArguments{out, a, nullptr, nullptr, wide(outer), wide(channels), wide(inner)});
}

void channel_grad_sums(DType dtype, void* out, const void* grad, const void* a, const void* mean, size_t outer,
                       size_t channels, size_t inner) {
  launch_blocks(channels, outer * inner,
                by_width(dtype, KernelId::channel_grad_sums_float, KernelId::channel_grad_sums_double),
                ChannelArguments{out, a, grad, mean, wide(outer), wide(channels), wide(inner)});
}

}  // namespace

void add_layers(Kernels& table) {
  table.conv2d = &conv2d;
  table.conv2d_grad_input = &conv2d_grad_input;
  table.conv2d_grad_weight = &conv2d_grad_weight;
  table.max_pool = &max_pool;
  table.avg_pool = &avg_pool;
  table.avg_pool_grad = &avg_pool_grad;
  table.channel_moments = &channel_moments;
  table.channel_grad_sums = &channel_grad_sums;
}

}  // namespace ringwise::tensor::cuda
