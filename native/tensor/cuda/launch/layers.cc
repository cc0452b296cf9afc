// Convolution, pooling and sums by channel: cuDNN, or the host's side of kernels/layers.cu and kernels/channels.cu.
#include <stdexcept>

#include "tensor/cuda/launch/kernels.h"
#include "tensor/cuda/launch/launch.h"
#include "tensor/cuda/libraries/dnn_kernels.h"

namespace ringwise::tensor::cuda {

namespace {

/// Returns one of two kernels, by the dtype.
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

template <class Sizes>
ChannelArguments channels_of(void* out, const void* a, const void* grad, const void* mean, const Sizes& s) {
  ChannelArguments x{};
  x.out = out;
  x.a = a;
  x.b = grad;
  x.mean = mean;
  x.channels = wide(s.channels);
  x.inner = wide(s.inner);
  x.count = wide(s.outer * s.inner);
  return x;
}

/// Sums by channel. Neighbouring threads have neighbouring elements of a channel, or neighbouring channels if these lie
/// side by side (inner = 1).
void sum_channels(KernelId kernel, DType dtype, size_t outer, ChannelArguments x) {
  if (x.channels == 0) return;
  Device& device = current_device();
  const auto element = wide(byte_size(dtype));
  x.is_column = x.inner == 1;
  const int64_t pack = 16 / element, dense = x.is_column ? x.channels : x.inner;
  x.use_packs = dense % pack == 0 && are_aligned({x.a, x.b});
  const int64_t per_unit = x.use_packs ? pack : 1, row = x.channels * x.inner * element;
  x.reduced[x.reduced_rank++] = reduced_dimension(wide(outer), row);
  if (!x.is_column) x.reduced[x.reduced_rank++] = reduced_dimension(x.inner / per_unit, per_unit * element);
  x.units = x.is_column ? x.count : x.count / per_unit;
  const int in_flight = (x.use_packs ? 4 : 8) / (x.b ? 2 : 1);  // as in kernels/channels.cu
  const TeamWork work{x.is_column ? x.channels / per_unit : x.channels, x.units, x.is_column != 0, x.use_packs != 0,
                      in_flight};
  const int64_t chunks = work.chunks();
  x.lanes = work.lanes();
  x.chunk = std::max<int64_t>((x.units + chunks - 1) / chunks, 1);
  x.chunks = std::max<int64_t>((x.units + x.chunk - 1) / x.chunk, 1);
  const Grid grid{static_cast<unsigned>(work.blocks()), static_cast<unsigned>(x.chunks)};
  if (x.chunks == 1) return device.launch(kernel, grid, kThreads, x);
  const Scratch partial(static_cast<size_t>(x.chunks * 2 * x.channels) * sizeof(double));
  x.partial = static_cast<double*>(partial.data());
  device.launch(kernel, grid, kThreads, x);
  device.launch(by_width(dtype, KernelId::channel_chunks_float, KernelId::channel_chunks_double),
                {static_cast<unsigned>((x.channels + 31) / 32)}, kThreads, x);
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
  sum_channels(by_width(x.dtype, KernelId::channel_moments_float, KernelId::channel_moments_double), x.dtype, x.outer,
               channels_of(x.out, x.a, nullptr, nullptr, x));
}

void channel_grad_sums(const ChannelGradSums& x) {
  sum_channels(by_width(x.dtype, KernelId::channel_grad_sums_float, KernelId::channel_grad_sums_double), x.dtype,
               x.outer, channels_of(x.out, x.a, x.grad, x.mean, x));
}

}  // namespace ringwise::tensor::cuda
