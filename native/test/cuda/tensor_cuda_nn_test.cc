// Compares the CUDA kernels of neural networks with those of the CPU: normalisation, attention, random numbers,
// convolution, pooling. Results in float16 and bfloat16 are compared with the CPU's results in float32.
#include "test/cuda/tensor_cuda_attention.h"
#include "test/cuda/tensor_cuda_convolutions.h"

using namespace ringwise;
using namespace ringwise::tensor;
using namespace ringwise::test;

namespace {

/// Runs the call make(true), which has host pointers, on the CPU, and the call make(false), which has device pointers,
/// on the device.
template <class Make>
void norm_of(Make make) {
  cpu.norm(make(true));
  gpu::kernels().norm(make(false));
}

void check_norm(DType dtype, size_t rows, size_t cols) {
  const size_t count = rows * cols;
  const bool has_mean = below(2), has_addend = below(2), has_gamma = below(2), has_beta = below(2);
  const DType row_type = computing(dtype);
  Wide a(dtype, count), addend(dtype, count), sum(dtype, count), out(dtype, count), gamma(dtype, cols),
      beta(dtype, cols);
  Twin mean(row_type, rows), rstd(row_type, rows);
  norm_of([&](bool on_host) {
    const auto at = [&](auto& twin) -> void* {
      return on_host ? static_cast<void*>(twin.host()) : static_cast<void*>(twin.device());
    };
    return Norm{on_host ? row_type : dtype,
                at(out),
                at(rstd),
                at(a),
                has_mean ? at(mean) : nullptr,
                has_addend ? at(addend) : nullptr,
                has_addend ? at(sum) : nullptr,
                has_gamma ? at(gamma) : nullptr,
                has_beta ? at(beta) : nullptr,
                rows,
                cols,
                1e-5};
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
    const auto at = [&](auto& twin) -> void* {
      return on_host ? static_cast<void*>(twin.host()) : static_cast<void*>(twin.device());
    };
    return NormGrad{on_host ? row_type : dtype,
                    at(grad),
                    at(rstd),
                    at(a),
                    has_mean ? at(mean) : nullptr,
                    has_gamma ? at(gamma) : nullptr,
                    wants_in ? at(grad_in) : nullptr,
                    wants_gamma ? at(grad_gamma) : nullptr,
                    wants_beta ? at(grad_beta) : nullptr,
                    rows,
                    cols,
                    accumulate};
  };
  cpu.norm_grad(make(true));
  gpu::kernels().norm_grad(make(false));
  const double loose = std::max(1e-4, 4 * tolerance_of(dtype));
  grad_in.compare(loose, "norm_grad");
  grad_gamma.compare(loose, "norm_grad's gamma");
  grad_beta.compare(loose, "norm_grad's beta");
}

void check_group_norm(DType dtype, size_t batch, size_t groups, size_t channels, size_t inner) {
  const size_t rows = batch * groups, count = rows * channels * inner, all = groups * channels;
  const bool has_gamma = below(2), has_beta = below(2), wants_in = below(4) > 0, accumulate = below(2);
  Twin a(dtype, count), out(dtype, count), gamma(dtype, all), beta(dtype, all), mean(dtype, rows), rstd(dtype, rows);
  Twin grad(dtype, count), grad_in(dtype, count), sums(dtype, 2 * batch * all);
  const auto at = [](Twin& twin, bool on_host) -> void* {
    return on_host ? static_cast<void*>(twin.host()) : static_cast<void*>(twin.device());
  };
  const auto forward = [&](bool on_host) {
    return GroupNorm{dtype,
                     at(out, on_host),
                     at(mean, on_host),
                     at(rstd, on_host),
                     at(a, on_host),
                     has_gamma ? at(gamma, on_host) : nullptr,
                     has_beta ? at(beta, on_host) : nullptr,
                     batch,
                     groups,
                     channels,
                     inner,
                     1e-5};
  };
  cpu.group_norm(forward(true));
  gpu::kernels().group_norm(forward(false));
  out.compare(2e-5, "group_norm");
  mean.compare(2e-5, "group_norm's mean");
  rstd.compare(2e-5, "group_norm's rstd");
  mean.upload();
  rstd.upload();
  const auto backward = [&](bool on_host) {
    return GroupNormGrad{dtype,
                         at(grad, on_host),
                         at(a, on_host),
                         at(mean, on_host),
                         at(rstd, on_host),
                         has_gamma ? at(gamma, on_host) : nullptr,
                         wants_in ? at(grad_in, on_host) : nullptr,
                         at(sums, on_host),
                         batch,
                         groups,
                         channels,
                         inner,
                         accumulate};
  };
  cpu.group_norm_grad(backward(true));
  gpu::kernels().group_norm_grad(backward(false));
  grad_in.compare(1e-4, "group_norm_grad");
  sums.compare(1e-4, "group_norm_grad's sums");
}

void check_lstm(DType dtype, size_t rows, size_t width) {
  const size_t count = rows * width;
  const DType row_type = computing(dtype);
  Wide gates(dtype, 4 * count), hidden(dtype, count), cell(dtype, count), out(dtype, count);
  Wide hidden_before(dtype, count), cell_before(dtype, count), cell_tanh(dtype, count);
  const auto forward = [&](bool on_host) {
    const auto at = [&](Wide& twin) -> void* {
      return on_host ? static_cast<void*>(twin.host()) : static_cast<void*>(twin.device());
    };
    return Lstm{on_host ? row_type : dtype, at(gates),       at(hidden),    at(cell), at(out),
                at(hidden_before),          at(cell_before), at(cell_tanh), rows,     width};
  };
  cpu.lstm(forward(true));
  gpu::kernels().lstm(forward(false));
  const double tolerance = std::max(2e-5, 2 * tolerance_of(dtype));
  gates.compare(tolerance, "lstm's gates");
  hidden.compare(tolerance, "lstm's hidden");
  cell.compare(tolerance, "lstm's cell");
  out.compare(tolerance, "lstm's out");
  hidden_before.compare(tolerance, "lstm's hidden_before");
  cell_before.compare(tolerance, "lstm's cell_before");
  cell_tanh.compare(tolerance, "lstm's cell_tanh");

  Wide values(dtype, 4 * count), before(dtype, count), bounded(dtype, count), grad_hidden(dtype, count),
      grad_out(dtype, count), grad_cell(dtype, count), grad_gates(dtype, 4 * count);
  const auto backward = [&](bool on_host) {
    const auto at = [&](Wide& twin) -> void* {
      return on_host ? static_cast<void*>(twin.host()) : static_cast<void*>(twin.device());
    };
    return LstmGrad{on_host ? row_type : dtype,
                    at(grad_gates),
                    at(grad_cell),
                    at(values),
                    at(before),
                    at(bounded),
                    at(grad_hidden),
                    at(grad_out),
                    rows,
                    width};
  };
  cpu.lstm_grad(backward(true));
  gpu::kernels().lstm_grad(backward(false));
  const double loose = std::max(1e-4, 4 * tolerance_of(dtype));
  grad_gates.compare(loose, "lstm_grad");
  grad_cell.compare(loose, "lstm_grad's cell");
}

/// Sets the bins of adaptive pooling: boxes of nearly equal sizes that cover the plane.
void set_bins(Twin& bins, const Window& w) {
  int64_t* to = bins.host<int64_t>();
  const auto add = [&](size_t size, size_t outs) {
    for (size_t o = 0; o < outs; o++) {
      const auto begin = static_cast<int64_t>(o * size / outs);
      const auto end = static_cast<int64_t>(((o + 1) * size + outs - 1) / outs);
      for (const int64_t value : {begin, end, end - begin}) *to++ = value;
    }
  };
  add(w.height, w.out_height);
  add(w.width, w.out_width);
  bins.upload();
}

}  // namespace

TEST("normalisation and its gradients: rows of a warp, of a block, and longer; few and many; with and without packs") {
  for (const DType dtype : kFloats) {
    for (const auto& [rows, cols] : std::initializer_list<std::pair<size_t, size_t>>{{1, 1},
                                                                                     {7, 3},
                                                                                     {33, 64},
                                                                                     {9, 129},
                                                                                     {300, 20},
                                                                                     {1000, 8},
                                                                                     {130, 257},
                                                                                     {400, 768},
                                                                                     {5, 768},
                                                                                     {3, 1024},
                                                                                     {3, 1025},
                                                                                     {2, 2052},
                                                                                     {2, 8192},
                                                                                     {1, 8195}}) {
      check_norm(dtype, rows, cols);
    }
  }
}

TEST("group normalisation and its gradients: few and many channels, planes of one element and of many") {
  for (const DType dtype : {DType::Float32, DType::Float64}) {
    check_group_norm(dtype, 3, 2, 4, 1);
    check_group_norm(dtype, 1, 3, 1, 7);
    check_group_norm(dtype, 2, 4, 9, 33);
    check_group_norm(dtype, 1, 2, 3, 256);
    check_group_norm(dtype, 2, 1, 5, 700);
  }
}

TEST("a step of an LSTM and its gradient: rows shorter and longer than a block") {
  for (const DType dtype : kFloats) {
    check_lstm(dtype, 1, 1);
    check_lstm(dtype, 5, 33);
    check_lstm(dtype, 3, 600);
  }
}

TEST("attention and its gradients: all widths, masks, strides; causal; dropout") {
  const auto attend = [](const Attention& a) { return gpu::kernels().attention(a), true; };
  const auto attend_back = [](const AttentionGrad& g) { return gpu::kernels().attention_grad(g), true; };
  for (const DType dtype : kFloats) {
    for (int round = 0; round < rounds(10); round++) {
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
      check_attention(dtype, sizes, round % 3 == 0 ? 4 : below(3), static_cast<int>(below(3)), attend, attend_back);
    }
  }
}

TEST("attention of 16-bit types: narrow, middle and wide heads; rows at any alignment; masks, dropout, blind queries") {
  // The position of dropout's stream lies on the device, as in a captured step.
  Twin live(DType::Float64, 2);
  const auto to_device = [&](Attention& a) {
    live.host<double>()[0] = static_cast<double>(a.stream.seed);
    live.host<double>()[1] = static_cast<double>(a.stream.offset - 3);
    live.upload();
    a.stream = {1, 3, live.device<double>()};
  };
  const auto attend = [&](Attention a) { return to_device(a), gpu::kernels().attention(a), true; };
  const auto attend_back = [&](AttentionGrad g) { return to_device(g), gpu::kernels().attention_grad(g), true; };
  struct Case {
    size_t queries, keys, width, value_width;
    bool causal;
    double dropout;
    int mask;
    size_t gap;
  };
  constexpr Case kCases[] = {
      {130, 130, 64, 64, true, 0.1, 0, 0},  {70, 200, 64, 64, false, 0.1, 1, 8},  {64, 64, 32, 64, false, 0, 3, 8},
      {65, 131, 64, 64, false, 0.5, 2, 0},  {90, 66, 128, 128, true, 0.1, 0, 0},  {40, 100, 128, 80, true, 0.2, 2, 1},
      {66, 70, 96, 128, false, 0.3, 3, 8},  {33, 50, 127, 65, false, 0, 1, 1},    {70, 72, 256, 256, true, 0.1, 0, 0},
      {20, 80, 192, 256, false, 0.2, 1, 8}, {67, 33, 320, 136, false, 0.1, 2, 0}, {9, 70, 129, 130, true, 0, 3, 1},
      {3, 40, 8, 200, false, 0.4, 0, 0},    {100, 1, 16, 16, false, 0.25, 2, 0},  {1, 99, 64, 64, true, 0.25, 1, 0},
      {40, 75, 64, 64, false, 0.1, 4, 0},   {40, 76, 128, 64, true, 0.1, 4, 0},   {70, 90, 64, 32, true, 0.1, 1, 0},
  };
  for (const DType dtype : {DType::Float16, DType::BFloat16}) {
    for (const Case& c : kCases) {
      Attention sizes{};
      sizes.batch = 1;
      sizes.heads = 2;
      sizes.queries = c.queries, sizes.keys = c.keys;
      sizes.width = c.width, sizes.value_width = c.value_width;
      sizes.scale = 1 / std::sqrt(static_cast<double>(c.width));
      sizes.causal = c.causal;
      sizes.dropout = c.dropout;
      sizes.stream = {7, 1000 + below(1000)};
      check_attention(dtype, sizes, c.gap, c.mask, attend, attend_back);
    }
  }
}

TEST("random numbers and dropout: the CPU's bits, at every length and alignment") {
  const Kernels& device = gpu::kernels();
  for (const Stream stream : {Stream{0, 0}, Stream{(uint64_t{1} << 40) + 7, 5}, Stream{3, (uint64_t{1} << 32) - 3}}) {
    for (const size_t count : {0, 1, 3, 4, 5, 64, 1001}) {
      const size_t skip = below(3);
      Twin floats(DType::Float32, count + skip), integers(DType::Int64, count + skip);
      cpu.random({DType::Float32, floats.host<float>() + skip, count, RandomKind::Uniform, stream, -0.3, 0.7});
      device.random({DType::Float32, floats.device<float>() + skip, count, RandomKind::Uniform, stream, -0.3, 0.7});
      floats.compare(0, "uniform");
      cpu.random({DType::Float32, floats.host<float>() + skip, count, RandomKind::Normal, stream, 0, 0});
      device.random({DType::Float32, floats.device<float>() + skip, count, RandomKind::Normal, stream, 0, 0});
      floats.compare(2e-7, "normal");
      cpu.random(
          {DType::Int64, integers.host<int64_t>() + skip, count, RandomKind::Integers, stream, -5, 4294967291.0});
      device.random(
          {DType::Int64, integers.device<int64_t>() + skip, count, RandomKind::Integers, stream, -5, 4294967291.0});
      integers.compare(0, "integers");
      cpu.random({DType::Int64, integers.host<int64_t>() + skip, count, RandomKind::Bits, stream, 0, 0});
      device.random({DType::Int64, integers.device<int64_t>() + skip, count, RandomKind::Bits, stream, 0, 0});
      integers.compare(0, "bits");
      for (const DType dtype : kFloats) {
        Wide a(dtype, count), out(dtype, count);
        cpu.dropout({computing(dtype), out.host(), a.host(), count, 0.3, stream});
        device.dropout({dtype, out.device(), a.device(), count, 0.3, stream});
        out.compare(0, "dropout");
      }
    }
  }
}

TEST("a random stream whose position lies on the device") {
  Twin at(DType::Float64, 2), near(DType::Float32, 100), far(DType::Float32, 100);
  at.host<double>()[0] = 9;
  at.host<double>()[1] = 40;
  at.upload();
  cpu.random({DType::Float32, near.host(), 100, RandomKind::Uniform, {9, 43}, 0, 1});
  gpu::kernels().random({DType::Float32, near.device(), 100, RandomKind::Uniform, {1, 3, at.device<double>()}, 0, 1});
  near.compare(0, "uniform");
}

TEST("convolution with all kinds of windows, by the own kernels") {
  const Kernels& device = gpu::kernels();
  check_convolutions(rounds(60), [&](gpu::Convolution kind, DType dtype, void* x, void* weight, void* y,
                                     const ConvSizes& s, bool accumulate) {
    if (kind == gpu::Convolution::Forward)
      device.conv2d({s, dtype, y, x, weight});
    else if (kind == gpu::Convolution::GradInput)
      device.conv2d_grad_input({s, dtype, x, y, weight, accumulate});
    else
      device.conv2d_grad_weight({s, dtype, weight, y, x, accumulate});
    return true;
  });
}

TEST("pooling with all kinds of windows") {
  const Kernels& device = gpu::kernels();
  for (int round = 0; round < rounds(40); round++) {
    const ConvSizes s = random_convolution();
    const Window& w = s.window;
    const size_t planes = s.batch * s.out_channels, outs = planes * w.out_height * w.out_width;
    for (const DType stored : kFloats) {
      Wide out(stored, outs), from(stored, planes * w.height * w.width);
      Twin places(DType::Int64, outs);
      cpu.max_pool({computing(stored), out.host(), places.host<int64_t>(), from.host(), planes, w});
      device.max_pool({stored, out.device(), places.device<int64_t>(), from.device(), planes, w});
      out.compare(0, "max_pool");
      places.compare(0, "max_pool's positions");
      Twin bins(DType::Int64, 3 * (w.out_height + w.out_width));
      set_bins(bins, w);
      const PoolSizes boxes{planes, w.height, w.width, w.out_height, w.out_width};
      cpu.avg_pool({boxes, computing(stored), out.host(), from.host(), bins.host<int64_t>()});
      device.avg_pool({boxes, stored, out.device(), from.device(), bins.device<int64_t>()});
      out.compare(20 * tolerance_of(stored), "avg_pool");
      cpu.avg_pool_grad({boxes, computing(stored), from.host(), out.host(), bins.host<int64_t>()});
      device.avg_pool_grad({boxes, stored, from.device(), out.device(), bins.device<int64_t>()});
      from.compare(20 * tolerance_of(stored), "avg_pool_grad");
    }
  }
}

TEST("sums by channel: rows and columns, in packs and not, cut into chunks, far from zero, with an infinite element") {
  struct Sizes {
    size_t outer, channels, inner;
  };
  constexpr Sizes kSizes[] = {{1, 1, 1},    {3, 5, 300},  {4, 3, 49},    {64, 24, 1},  {64, 23, 1}, {3, 6, 196},
                              {2, 2, 4000}, {200, 3, 49}, {1, 2, 30000}, {3000, 8, 1}, {0, 3, 4},   {700, 4, 8}};
  const Kernels& device = gpu::kernels();
  for (const auto& [outer, channels, inner] : kSizes) {
    for (const DType dtype : {DType::Float32, DType::Float64}) {
      for (const double shift : {0.0, 3000.0, 1e6, std::numeric_limits<double>::infinity()}) {
        const std::string what = " of " + std::to_string(outer) + " · " + std::to_string(channels) + " · " +
                                 std::to_string(inner) + " shifted by " + std::to_string(shift);
        const double tolerance = 20 * tolerance_of(dtype);
        Twin a(dtype, outer * channels * inner), grad(dtype, a.count()), mean(dtype, channels),
            sums(dtype, 2 * channels);
        // Larger shifts move the first element alone, from which the device takes the distances of its channel.
        const size_t shifted = shift > 3000 ? std::min<size_t>(a.count(), 1) : a.count();
        for (size_t i = 0; i < shifted; i++) set(dtype, a.host(), i, value_at(dtype, a.host(), i) + shift);
        a.upload();
        cpu.channel_moments({dtype, sums.host(), a.host(), channels, outer, inner});
        device.channel_moments({dtype, sums.device(), a.device(), channels, outer, inner});
        sums.compare(tolerance, "channel_moments" + what);
        cpu.channel_grad_sums({dtype, sums.host(), grad.host(), a.host(), mean.host(), channels, outer, inner});
        device.channel_grad_sums(
            {dtype, sums.device(), grad.device(), a.device(), mean.device(), channels, outer, inner});
        sums.compare(tolerance, "channel_grad_sums" + what);
      }
    }
  }
}

int main() {
  // Turns cuDNN off, so that our own kernels run. tensor_cuda_library_test tests cuDNN.
  setenv("RINGWISE_LIBCUDNN", "none", 1);
  return run_on_device();
}
