// Compares convolutions and their gradients in all float types with those of the CPU, for our kernels and for cuDNN.
#pragma once

#include "tensor/cuda/libraries/dnn_kernels.h"
#include "test/cuda/tensor_cuda_twin.h"

namespace ringwise::test {

/// Returns random small sizes, with every kind of window.
inline ConvSizes random_convolution() {
  Window w{};
  w.kernel_height = 1 + below(3), w.kernel_width = 1 + below(3);
  w.stride_y = 1 + below(3), w.stride_x = 1 + below(3), w.dilation_y = 1 + below(2), w.dilation_x = 1 + below(2);
  w.pad_top = below(3), w.pad_left = below(3);
  const size_t reach_y = w.dilation_y * (w.kernel_height - 1) + 1, reach_x = w.dilation_x * (w.kernel_width - 1) + 1;
  w.height = reach_y + below(8), w.width = reach_x + below(8);
  w.out_height = (w.height + 2 * w.pad_top - reach_y) / w.stride_y + 1;
  w.out_width = (w.width + 2 * w.pad_left - reach_x) / w.stride_x + 1;
  return {1 + below(2), 1 + below(2), 1 + below(4), 1 + below(4), w};
}

/// Compares `rounds` convolutions of random sizes, and their gradients. `convolve` has the signature of
/// gpu::convolve_by_library.
template <class Convolve>
void check_convolutions(int rounds, Convolve convolve) {
  using enum gpu::Convolution;
  for (int round = 0; round < rounds; round++) {
    const DType dtype = kFloats[round % 4], computed = computing(dtype);
    const ConvSizes s = random_convolution();
    const Window& w = s.window;
    const size_t images = s.batch * s.groups;
    Wide x(dtype, images * s.in_channels * w.height * w.width),
        y(dtype, images * s.out_channels * w.out_height * w.out_width);
    Wide weight(dtype, s.groups * s.out_channels * s.in_channels * w.kernel_height * w.kernel_width, 0.1);
    // Halves: a result may differ by one unit of the largest addend, which may be several units of a small sum. Wider
    // types: the order of the additions differs, so the bound grows with their number.
    const double tolerance = (is_half(dtype) ? 8 : 20) * tolerance_of(dtype);
    const bool accumulate = below(2);
    cpu.conv2d({s, computed, y.host(), x.host(), weight.host()});
    CHECK(convolve(Forward, dtype, x.device(), weight.device(), y.device(), s, false));
    y.compare(tolerance, "conv2d");
    cpu.conv2d_grad_input({s, computed, x.host(), y.host(), weight.host(), accumulate});
    CHECK(convolve(GradInput, dtype, x.device(), weight.device(), y.device(), s, accumulate));
    x.compare(tolerance, "conv2d_grad_input");
    cpu.conv2d_grad_weight({s, computed, weight.host(), y.host(), x.host(), accumulate});
    CHECK(convolve(GradWeight, dtype, x.device(), weight.device(), y.device(), s, accumulate));
    weight.compare(4 * tolerance, "conv2d_grad_weight");
  }
}

}  // namespace ringwise::test
