// Tests convolution, pooling and sums by channel at every instruction set. The operands are whole numbers, so that the
// right answer is exact, and their memory ends where a page without access begins.
#include "test/tensor/tensor_oracle.h"

using namespace ringwise;
using tensor::ConvSizes;
using tensor::Window;
using test::all_levels;
using test::Guarded;
using test::whole_numbers;

namespace {

Window window(size_t height, size_t width, size_t kernel_height, size_t kernel_width, size_t stride, size_t dilation,
              size_t pad) {
  return {height,
          width,
          (height + 2 * pad - dilation * (kernel_height - 1) - 1) / stride + 1,
          (width + 2 * pad - dilation * (kernel_width - 1) - 1) / stride + 1,
          kernel_height,
          kernel_width,
          stride,
          stride,
          dilation,
          dilation,
          pad,
          pad};
}

/// Calls visit(index in x, index in the weight, index in the output) for every product of a convolution.
template <class Visit>
void for_each_product(const ConvSizes& s, Visit visit) {
  const Window& w = s.window;
  for (size_t i = 0; i < s.batch * s.groups; i++) {
    for (size_t co = 0; co < s.out_channels; co++) {
      for (size_t pixel = 0; pixel < w.out_height * w.out_width; pixel++) {
        for (size_t ci = 0; ci < s.in_channels; ci++) {
          for (size_t tap = 0; tap < w.kernel_height * w.kernel_width; tap++) {
            const size_t y = pixel / w.out_width * w.stride_y + tap / w.kernel_width * w.dilation_y - w.pad_top;
            const size_t x = pixel % w.out_width * w.stride_x + tap % w.kernel_width * w.dilation_x - w.pad_left;
            // In the padding; coordinates below 0 have wrapped around to large numbers.
            if (y >= w.height || x >= w.width) continue;
            visit(((i * s.in_channels + ci) * w.height + y) * w.width + x,
                  ((i % s.groups * s.out_channels + co) * s.in_channels + ci) * w.kernel_height * w.kernel_width + tap,
                  (i * s.out_channels + co) * w.out_height * w.out_width + pixel);
          }
        }
      }
    }
  }
}

size_t differing(const Guarded& got, const std::vector<float>& want) {
  size_t count = 0;
  for (size_t i = 0; i < want.size(); i++) count += !(got.data()[i] == want[i]);
  return count;
}

/// Returns the number of wrong elements of the convolution and of both gradients, for gradients that are written and
/// that are added.
size_t wrong(const tensor::Kernels& kernels, const ConvSizes& s) {
  const Window& w = s.window;
  const auto x = whole_numbers(s.batch * s.groups * s.in_channels * w.height * w.width, 1);
  const auto weight = whole_numbers(s.groups * s.out_channels * s.in_channels * w.kernel_height * w.kernel_width, 2);
  const auto grad = whole_numbers(s.batch * s.groups * s.out_channels * w.out_height * w.out_width, 3);
  const Guarded x_in(x), weight_in(weight), grad_in(grad);
  size_t count = 0;
  for (const bool accumulate : {false, true}) {
    std::vector<float> out(grad.size()), grad_x(x.size(), accumulate), grad_weight(weight.size(), accumulate);
    for_each_product(s, [&](size_t i, size_t k, size_t o) {
      out[o] += x[i] * weight[k];
      grad_x[i] += grad[o] * weight[k];
      grad_weight[k] += grad[o] * x[i];
    });
    const float start = accumulate ? 1 : NAN;
    const Guarded got(std::vector<float>(out.size(), NAN)), got_x(std::vector<float>(x.size(), start)),
        got_weight(std::vector<float>(weight.size(), start));
    kernels.conv2d({s, DType::Float32, got.data(), x_in.data(), weight_in.data()});
    kernels.conv2d_grad_input({s, DType::Float32, got_x.data(), grad_in.data(), weight_in.data(), accumulate});
    kernels.conv2d_grad_weight({s, DType::Float32, got_weight.data(), grad_in.data(), x_in.data(), accumulate});
    count += differing(got, out) + differing(got_x, grad_x) + differing(got_weight, grad_weight);
  }
  return count;
}

}  // namespace

TEST("convolutions are exact for small sizes of all kinds") {
  for (const auto* kernels : all_levels()) {
    for (const size_t stride : {1, 2, 3}) {
      for (const size_t dilation : {1, 2}) {
        for (const size_t pad : {0, 1, 3}) {
          for (const size_t channels : {1, 3, 18}) {
            const ConvSizes s{2, channels == 3 ? 2u : 1u, channels, 21 - channels,
                              window(7, 9, 3, 2, stride, dilation, pad)};
            CHECK_EQ(wrong(*kernels, s), 0u);
          }
        }
      }
    }
  }
}

TEST("convolutions are exact where rows, columns and sums are cut into blocks") {
  for (const auto* kernels : all_levels()) {
    CHECK_EQ(wrong(*kernels, {1, 1, 50, 7, window(12, 13, 3, 3, 1, 1, 1)}), 0u);
    CHECK_EQ(wrong(*kernels, {1, 1, 2, 200, window(24, 25, 3, 3, 1, 1, 1)}), 0u);
    CHECK_EQ(wrong(*kernels, {1, 1, 3, 4, window(1, 700, 1, 5, 1, 1, 0)}), 0u);
  }
}

TEST("pooling and sums by channel touch nothing outside of their memory") {
  const Window w = window(9, 7, 3, 3, 2, 1, 1);
  const auto a = whole_numbers(4 * 63, 4);
  const Guarded in(a), grad(whole_numbers(4 * 63, 5)), mean(std::vector<float>(4, 1));
  for (const auto* kernels : all_levels()) {
    const Guarded out(std::vector<float>(4 * w.out_height * w.out_width)), sums(std::vector<float>(8));
    std::vector<int64_t> positions(4 * w.out_height * w.out_width);
    kernels->max_pool({DType::Float32, out.data(), positions.data(), in.data(), 4, w});
    for (size_t i = 0; i < positions.size(); i++) {
      const size_t plane = i / (w.out_height * w.out_width);
      CHECK_EQ(out.data()[i], a[plane * 63 + static_cast<size_t>(positions[i])]);
    }
    kernels->channel_moments({DType::Float32, sums.data(), in.data(), 4, 1, 63});
    for (size_t c = 0; c < 4; c++) {
      float total = 0;
      for (size_t i = 0; i < 63; i++) total += a[c * 63 + i];
      CHECK_EQ(sums.data()[c], total / 63);
    }
    kernels->channel_grad_sums({DType::Float32, sums.data(), grad.data(), in.data(), mean.data(), 4, 63, 1});
    float first = 0, second = 0;
    for (size_t i = 0; i < 63; i++) {
      first += grad.data()[4 * i];
      second += grad.data()[4 * i] * (a[4 * i] - 1);
    }
    CHECK_EQ(sums.data()[0], first);
    CHECK_EQ(sums.data()[4], second);
  }
}

int main() { return test::run_all(); }
