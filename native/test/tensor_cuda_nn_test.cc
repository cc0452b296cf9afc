// CUDA kernels of networks against those of the CPU: normalisation, attention, random numbers, convolution, pooling.
// What is stored in float16 or bfloat16 is compared with the CPU's result in float32.
#include "tensor_cuda_twin.h"

using namespace ringwise;
using namespace ringwise::tensor;
using namespace ringwise::test;

namespace {

constexpr DType kFloats[] = {DType::Float32, DType::Float64, DType::Float16, DType::BFloat16};
DType computing(DType dtype) { return is_half(dtype) ? DType::Float32 : dtype; }

/// A twin whose host side is what computes: of halves a float copy.
class Wide {
 public:
  Wide(DType dtype, size_t count) : twin_(dtype, count) { widen(); }
  /// Multiplies every element, on both sides.
  Wide(DType dtype, size_t count, double factor) : twin_(dtype, count) {
    for (size_t i = 0; i < count; i++) set(dtype, twin_.host(), i, factor * value_at(dtype, twin_.host(), i));
    twin_.upload();
    widen();
  }
  char* host() { return is_half(twin_.dtype()) ? reinterpret_cast<char*>(wide_.data()) : twin_.host<char>(); }
  char* device() { return twin_.device<char>(); }
  /// Afterwards the host side is rounded as the device's is.
  void compare(double tolerance, const std::string& what) {
    if (is_half(twin_.dtype())) {
      for (size_t i = 0; i < wide_.size(); i++) set(twin_.dtype(), twin_.host(), i, static_cast<double>(wide_[i]));
    }
    twin_.compare(tolerance, what + " of " + name_of(twin_.dtype()));
    widen();
  }

 private:
  void widen() {
    if (!is_half(twin_.dtype())) return;
    wide_.resize(twin_.count());
    for (size_t i = 0; i < wide_.size(); i++) wide_[i] = static_cast<float>(value_at(twin_.dtype(), twin_.host(), i));
  }
  Twin twin_;
  std::vector<float> wide_;
};

/// Runs one call for both sides: side(true) gives host pointers, side(false) those of the device.
template <class Make>
void norm_of(DType dtype, Make make) {
  cpu.norm(computing(dtype), make(true));
  cuda::kernels().norm(dtype, make(false));
}

void check_norm(DType dtype, size_t rows, size_t cols) {
  const size_t count = rows * cols;
  const bool has_mean = below(2), has_addend = below(2), has_gamma = below(2), has_beta = below(2);
  const DType row_type = computing(dtype);
  Wide a(dtype, count), addend(dtype, count), sum(dtype, count), out(dtype, count), gamma(dtype, cols), beta(dtype, cols);
  Twin mean(row_type, rows), rstd(row_type, rows);
  norm_of(dtype, [&](bool on_host) {
    const auto at = [&](auto& twin) -> void* { return on_host ? static_cast<void*>(twin.host()) : static_cast<void*>(twin.device()); };
    return Norm{rows, cols, 1e-5, at(out), has_mean ? at(mean) : nullptr, at(rstd), at(a), has_addend ? at(addend) : nullptr,
                has_addend ? at(sum) : nullptr, has_gamma ? at(gamma) : nullptr, has_beta ? at(beta) : nullptr};
  });
  const double tolerance = std::max(2e-5, 2 * tolerance_of(dtype));
  out.compare(tolerance, "norm");
  rstd.compare(is_half(dtype) ? tolerance : 2e-5, "norm's rstd");
  if (has_mean) mean.compare(is_half(dtype) ? tolerance : 2e-5, "norm's mean");
  if (has_addend) sum.compare(tolerance_of(dtype), "norm's sum");

  Wide grad(dtype, count), grad_in(dtype, count), grad_gamma(dtype, cols), grad_beta(dtype, cols);
  const bool accumulate = below(2), wants_in = below(4) > 0, wants_gamma = below(4) > 0, wants_beta = below(4) > 0;
  rstd.upload();
  mean.upload();
  const auto make = [&](bool on_host) {
    const auto at = [&](auto& twin) -> void* { return on_host ? static_cast<void*>(twin.host()) : static_cast<void*>(twin.device()); };
    return NormGrad{rows, cols, accumulate, wants_in ? at(grad_in) : nullptr, wants_gamma ? at(grad_gamma) : nullptr,
                    wants_beta ? at(grad_beta) : nullptr, at(grad), at(a), has_mean ? at(mean) : nullptr, at(rstd),
                    has_gamma ? at(gamma) : nullptr};
  };
  cpu.norm_grad(row_type, make(true));
  cuda::kernels().norm_grad(dtype, make(false));
  const double loose = std::max(1e-4, 4 * tolerance_of(dtype));
  grad_in.compare(loose, "norm_grad");
  grad_gamma.compare(loose, "norm_grad's gamma");
  grad_beta.compare(loose, "norm_grad's beta");
}

/// Heads inside of a longer row, as in a packed projection; `gap` elements lie between rows.
struct Heads {
  std::unique_ptr<Wide> data;
  HeadRows on_host, on_device;
  Heads(DType dtype, size_t batch, size_t heads, size_t rows, size_t width, size_t gap) {
    const size_t step = heads * width + gap;
    data = std::make_unique<Wide>(dtype, batch * rows * step, 0.25);
    const auto place = [&](char* at) {
      return HeadRows{at, static_cast<ptrdiff_t>(rows * step), static_cast<ptrdiff_t>(width), static_cast<ptrdiff_t>(step)};
    };
    on_host = place(data->host());
    on_device = place(data->device());
  }
};

void check_attention(DType dtype, const Attention& sizes, size_t gap, int mask) {
  const auto& [batch, heads, queries, keys, width, value_width] =
      std::tie(sizes.batch, sizes.heads, sizes.queries, sizes.keys, sizes.width, sizes.value_width);
  Heads q(dtype, batch, heads, queries, width, gap), k(dtype, batch, heads, keys, width, gap), v(dtype, batch, heads, keys, value_width, gap);
  Heads out(dtype, batch, heads, queries, value_width, gap), grad(dtype, batch, heads, queries, value_width, gap);
  Heads grad_q(dtype, batch, heads, queries, width, gap), grad_k(dtype, batch, heads, keys, width, gap), grad_v(dtype, batch, heads, keys, value_width, gap);
  Twin lse(computing(dtype), batch * heads * queries);
  Wide plane(dtype, queries * keys);
  Twin hidden(DType::Bool, queries * keys);
  Attention host = sizes, device = sizes;
  host.q = q.on_host, host.k = k.on_host, host.v = v.on_host, host.out = out.on_host, host.lse = lse.host();
  device.q = q.on_device, device.k = k.on_device, device.v = v.on_device, device.out = out.on_device, device.lse = lse.device();
  if (mask) {
    const ptrdiff_t row = static_cast<ptrdiff_t>(keys);
    host.mask = {mask == 1 ? hidden.host<char>() : plane.host(), mask == 1 ? DType::Bool : computing(dtype), 0, 0, row, 1};
    device.mask = {mask == 1 ? hidden.device<char>() : plane.device(), mask == 1 ? DType::Bool : dtype, 0, 0, row, 1};
  }
  cpu.attention(computing(dtype), host);
  cuda::kernels().attention(dtype, device);
  const double tolerance = std::max(2e-5, 2 * tolerance_of(dtype));
  out.data->compare(tolerance, "attention");
  lse.compare(tolerance, "attention's lse");
  lse.upload();
  // Both go on from the same rounded result.
  cpu.attention_grad(computing(dtype), {host, grad.on_host, grad_q.on_host, grad_k.on_host, grad_v.on_host});
  cuda::kernels().attention_grad(dtype, {device, grad.on_device, grad_q.on_device, grad_k.on_device, grad_v.on_device});
  grad_q.data->compare(4 * tolerance, "attention's grad_q");
  grad_k.data->compare(4 * tolerance, "attention's grad_k");
  grad_v.data->compare(4 * tolerance, "attention's grad_v");
}

}  // namespace

TEST("normalisation and its gradients: rows of a warp, of a block, and longer; with and without packs of four") {
  for (const DType dtype : kFloats) {
    for (const auto& [rows, cols] : std::initializer_list<std::pair<size_t, size_t>>{
             {1, 1}, {7, 3}, {33, 64}, {9, 129}, {300, 20}, {5, 768}, {3, 1024}, {3, 1025}, {2, 2052}, {2, 8192}, {1, 8195}}) {
      check_norm(dtype, rows, cols);
    }
  }
}

TEST("attention and its gradients: all widths, masks, strides; causal; dropout") {
  for (const DType dtype : kFloats) {
    for (int round = 0; round < 10; round++) {
      Attention sizes{};
      sizes.batch = 1 + below(2);
      sizes.heads = 1 + below(2);
      sizes.queries = 1 + below(round % 2 ? 150 : 20);
      sizes.keys = 1 + below(round % 2 ? 150 : 20);
      sizes.width = round % 3 == 0 ? 4 * (1 + below(20)) : 1 + below(70);
      sizes.value_width = round % 3 == 0 ? sizes.width : 1 + below(70);
      sizes.scale = 1 / std::sqrt(static_cast<double>(sizes.width));
      sizes.causal = below(2);
      sizes.dropout = below(3) ? 0 : 0.3;
      sizes.stream = {7, 1000 + below(1000)};
      check_attention(dtype, sizes, round % 3 == 0 ? 4 : below(3), static_cast<int>(below(3)));
    }
  }
}

TEST("random numbers and dropout: the CPU's bits, at every length and alignment") {
  const Kernels& device = cuda::kernels();
  for (const Stream stream : {Stream{0, 0}, Stream{(uint64_t{1} << 40) + 7, 5}, Stream{3, (uint64_t{1} << 32) - 3}}) {
    for (const size_t count : {0, 1, 3, 4, 5, 64, 1001}) {
      const size_t skip = below(3);
      Twin floats(DType::Float32, count + skip), integers(DType::Int64, count + skip);
      cpu.random(RandomKind::Uniform, floats.host<float>() + skip, count, stream, -0.3, 0.7);
      device.random(RandomKind::Uniform, floats.device<float>() + skip, count, stream, -0.3, 0.7);
      floats.compare(0, "uniform");
      cpu.random(RandomKind::Normal, floats.host<float>() + skip, count, stream, 0, 0);
      device.random(RandomKind::Normal, floats.device<float>() + skip, count, stream, 0, 0);
      floats.compare(2e-7, "normal");
      cpu.random(RandomKind::Integers, integers.host<int64_t>() + skip, count, stream, -5, 4294967291.0);
      device.random(RandomKind::Integers, integers.device<int64_t>() + skip, count, stream, -5, 4294967291.0);
      integers.compare(0, "integers");
      cpu.random(RandomKind::Bits, integers.host<int64_t>() + skip, count, stream, 0, 0);
      device.random(RandomKind::Bits, integers.device<int64_t>() + skip, count, stream, 0, 0);
      integers.compare(0, "bits");
      for (const DType dtype : kFloats) {
        Wide a(dtype, count), out(dtype, count);
        cpu.dropout(computing(dtype), out.host(), a.host(), count, 0.3, stream);
        device.dropout(dtype, out.device(), a.device(), count, 0.3, stream);
        out.compare(0, "dropout");
      }
    }
  }
}

TEST("a stream whose position lies on the device") {
  Twin at(DType::Float64, 2), near(DType::Float32, 100), far(DType::Float32, 100);
  at.host<double>()[0] = 9;
  at.host<double>()[1] = 40;
  at.upload();
  cpu.random(RandomKind::Uniform, near.host(), 100, {9, 43}, 0, 1);
  cuda::kernels().random(RandomKind::Uniform, near.device(), 100, {1, 3, at.device<double>()}, 0, 1);
  near.compare(0, "uniform");
}

TEST("convolution, pooling and sums by channel, with all kinds of windows") {
  const Kernels& device = cuda::kernels();
  for (int round = 0; round < 40; round++) {
    const DType dtype = round % 2 ? DType::Float32 : DType::Float64;
    Window w{};
    w.kernel_height = 1 + below(3), w.kernel_width = 1 + below(3);
    w.stride_y = 1 + below(3), w.stride_x = 1 + below(3), w.dilation_y = 1 + below(2), w.dilation_x = 1 + below(2);
    w.pad_top = below(3), w.pad_left = below(3);
    const size_t reach_y = w.dilation_y * (w.kernel_height - 1) + 1, reach_x = w.dilation_x * (w.kernel_width - 1) + 1;
    w.height = reach_y + below(8), w.width = reach_x + below(8);
    w.out_height = (w.height + 2 * w.pad_top - reach_y) / w.stride_y + 1;
    w.out_width = (w.width + 2 * w.pad_left - reach_x) / w.stride_x + 1;
    const ConvSizes s{1 + below(2), 1 + below(2), 1 + below(4), 1 + below(4), w};
    const size_t images = s.batch * s.groups, plane = w.height * w.width, area = w.out_height * w.out_width;
    Twin x(dtype, images * s.in_channels * plane), out(dtype, images * s.out_channels * area);
    Twin weight(dtype, s.groups * s.out_channels * s.in_channels * w.kernel_height * w.kernel_width);
    Twin places(DType::Int64, out.count()), from(dtype, images * s.out_channels * plane);
    const double tolerance = 20 * tolerance_of(dtype);
    const bool accumulate = below(2);
    cpu.conv2d(dtype, out.host(), x.host(), weight.host(), s);
    device.conv2d(dtype, out.device(), x.device(), weight.device(), s);
    out.compare(tolerance, "conv2d");
    out.upload();
    cpu.conv2d_grad_input(dtype, x.host(), out.host(), weight.host(), s, accumulate);
    device.conv2d_grad_input(dtype, x.device(), out.device(), weight.device(), s, accumulate);
    x.compare(tolerance, "conv2d_grad_input");
    x.upload();
    cpu.conv2d_grad_weight(dtype, weight.host(), out.host(), x.host(), s, accumulate);
    device.conv2d_grad_weight(dtype, weight.device(), out.device(), x.device(), s, accumulate);
    weight.compare(4 * tolerance, "conv2d_grad_weight");
    cpu.max_pool(dtype, out.host(), places.host<int64_t>(), from.host(), images * s.out_channels, w);
    device.max_pool(dtype, out.device(), places.device<int64_t>(), from.device(), images * s.out_channels, w);
    out.compare(0, "max_pool");
    places.compare(0, "max_pool's positions");
    const size_t outer = 1 + below(4), channels = 1 + below(5), inner = 1 + below(300);
    Twin a(dtype, outer * channels * inner), grad(dtype, a.count()), mean(dtype, channels), sums(dtype, 2 * channels);
    cpu.channel_moments(dtype, sums.host(), a.host(), outer, channels, inner);
    device.channel_moments(dtype, sums.device(), a.device(), outer, channels, inner);
    sums.compare(tolerance, "channel_moments");
    cpu.channel_grad_sums(dtype, sums.host(), grad.host(), a.host(), mean.host(), outer, channels, inner);
    device.channel_grad_sums(dtype, sums.device(), grad.device(), a.device(), mean.device(), outer, channels, inner);
    sums.compare(tolerance, "channel_grad_sums");
  }
}

int main() { return run_on_device(); }
