// Tests the kernels that NVIDIA's libraries compute: with the replacements of the libraries on the software device,
// with the installed libraries on a GPU.
#include "tensor/cuda/device/captured_step.h"
#include "tensor/cuda/libraries/cublas_lt.h"
#include "test/cuda/tensor_cuda_attention.h"
#include "test/cuda/tensor_cuda_convolutions.h"
#include "test/cuda/tensor_cuda_products.h"

using namespace ringwise;
using namespace ringwise::tensor;
using namespace ringwise::test;

TEST("products of every float type are done by cublasLt, transposed, strided, in batches and added") {
  CHECK_EQ(gpu::cublas_lt().reason, "");
  check_products(80, &gpu::multiply_by_library);
}

TEST("bias, relu and gelu by tanh are epilogues of cublasLt's products, which keep what gelu read") {
  int done = 0;
  for (int round = 0; round < 60; round++) {
    const DType dtype = kFloats[round % 4];
    const size_t rows = 1 + below(40), outs = 8 * (1 + below(6)) + (round % 5 == 0), ins = 1 + below(50);
    const auto activation = static_cast<Activation>(below(4));
    const bool has_bias = below(4) > 0, keeps = activation == Activation::GeluTanh && below(2);
    Twin out(dtype, rows * outs), before(dtype, rows * outs), x(dtype, rows * ins), w(dtype, outs * ins),
        bias(dtype, outs);
    for (size_t row = 0; row < rows; row++) {
      for (size_t col = 0; col < outs; col++) {
        double sum = has_bias ? value_at(dtype, bias.host(), col) : 0;
        for (size_t k = 0; k < ins; k++)
          sum += value_at(dtype, x.host(), row * ins + k) * value_at(dtype, w.host(), col * ins + k);
        if (keeps) set(dtype, before.host(), row * outs + col, sum);
        if (activation == Activation::Relu) sum = std::max(sum, 0.0);
        if (activation == Activation::GeluTanh)
          sum *= 0.5 * (1 + std::tanh(std::sqrt(2 / M_PI) * (sum + 0.044715 * sum * sum * sum)));
        set(dtype, out.host(), row * outs + col, sum);
      }
    }
    Linear layer{};
    layer.dtype = dtype;
    layer.rows = rows;
    layer.outs = outs;
    layer.ins = ins;
    layer.out = out.device<void>();
    layer.before = keeps ? before.device<void>() : nullptr;
    layer.x = x.device<void>();
    layer.w = w.device<void>();
    layer.bias = has_bias ? bias.device<void>() : nullptr;
    layer.activation = activation;
    const bool is_plain = activation == Activation::None && !has_bias;
    const bool should = dtype != DType::Float64 && activation != Activation::Gelu && !is_plain && !(keeps && outs % 8);
    CHECK_EQ(gpu::linear_by_library(layer), should);
    if (!should) continue;
    done++;
    const double tolerance = dtype == DType::Float32 ? 1e-4 : tolerance_of(dtype);
    out.compare(tolerance, std::string("linear of ") + name_of(dtype));
    before.compare(tolerance, std::string("what gelu reads, of ") + name_of(dtype));
  }
  CHECK(done > 15);
}

TEST("convolutions of every float type are done by cuDNN, with their gradients, written and added") {
  CHECK_EQ(gpu::cudnn().reason, "");
  check_convolutions(80, &gpu::convolve_by_library);
}

TEST("attention of halves and its gradients in the shapes of models are done by cuDNN") {
  for (const DType dtype : {DType::Float16, DType::BFloat16}) {
    for (const size_t width : {64, 128}) {
      for (const bool causal : {false, true}) {
        Attention sizes{};
        sizes.batch = 1;
        sizes.heads = 2;
        sizes.queries = sizes.keys = 128;
        sizes.width = sizes.value_width = width;
        sizes.scale = 1 / std::sqrt(static_cast<double>(width));
        sizes.causal = causal;
        check_attention(dtype, sizes, causal ? 64 : 0, 0, &gpu::attend_by_library, &gpu::attend_back_by_library);
      }
    }
  }
}

TEST("attention is right in shapes that some versions of cuDNN refuse, inside of packed rows too") {
  // Short sequences, and values of another width than keys: versions differ in which of them they support, most of all
  // for gradients. Our own kernels compute what the library refuses.
  int refused = 0;
  const auto attend = [&](const Attention& a) {
    if (!gpu::attend_by_library(a)) refused++, gpu::attention(a);
    return true;
  };
  const auto attend_back = [&](const AttentionGrad& g) {
    if (!gpu::attend_back_by_library(g)) refused++, gpu::attention_grad(g);
    return true;
  };
  for (int round = 0; round < 24; round++) {
    Attention sizes{};
    sizes.batch = 1 + below(2);
    sizes.heads = 1 + below(2);
    sizes.queries = 2 + below(40);
    sizes.keys = 2 + below(40);
    sizes.width = 8 * (1 + below(4));
    sizes.value_width = round % 3 ? sizes.width : 8 * (1 + below(4));
    sizes.scale = 1 / std::sqrt(static_cast<double>(sizes.width));
    sizes.causal = below(2);
    check_attention(round % 2 ? DType::Float16 : DType::BFloat16, sizes, 8 * below(3), 0, attend, attend_back);
  }
  if (refused > 0) std::printf("cuDNN refused %d of 48 calls; our kernels computed them\n", refused);
  if (!is_on_gpu()) CHECK_EQ(refused, 0);  // the replacement of cuDNN computes them all
}

namespace {

/// A convolution of `width` floats by one weight, by cuDNN.
struct Line {
  Twin x{DType::Float32, 2000}, weight{DType::Float32, 1}, y{DType::Float32, 2000};

  bool convolve(size_t width) {
    Window w{};
    w.height = w.out_height = w.kernel_height = w.kernel_width = 1;
    w.stride_y = w.stride_x = w.dilation_y = w.dilation_x = 1;
    w.width = w.out_width = width;
    return gpu::convolve_by_library(gpu::Convolution::Forward, DType::Float32, x.device(), weight.device(), y.device(),
                                    {1, 1, 1, 1, w}, false);
  }
  /// Compares the first `width` results, when the device has computed them.
  void compare(size_t width) {
    std::vector<float> got(width);
    gpu::current_device().download(got.data(), y.device(), width * sizeof(float));
    for (size_t i = 0; i < width; i++) CHECK_EQ(got[i], x.host<float>()[i] * *weight.host<float>());
  }
};

/// Returns a function by which tests control the replacement of cuDNN; null with the real one.
template <class Number>
auto control(const char* name) {
  return reinterpret_cast<int (*)(Number)>(gpu::cudnn().library.symbol(name));
}

constexpr size_t kMorePlansThanFit = 1100;

}  // namespace

TEST("plans that leave the cache live until their work has run, and as long as a step that has captured it") {
  Line first, captured, others;
  gpu::CapturedStep step(gpu::current_device());
  CHECK(first.convolve(1500));
  step.begin();
  CHECK(captured.convolve(1501));
  step.end();
  for (size_t width = 1; width <= kMorePlansThanFit; width++) CHECK(others.convolve(width));
  step.launch();
  first.compare(1500);
  others.compare(kMorePlansThanFit);
  captured.compare(1501);
  step.launch();
  gpu::current_device().synchronize();
}

TEST("a plan that fails, or that needs too large a workspace, is left to our own kernels") {
  const auto fail = control<int>("softwareCudnnFail");
  const auto set_workspace = control<int64_t>("softwareCudnnWorkspace");
  if (!fail) return;
  Line line;
  CHECK(line.convolve(1600));
  fail(1);
  CHECK(!line.convolve(1600));
  CHECK(!line.convolve(1600));
  set_workspace(int64_t{2} << 30);
  CHECK(!line.convolve(1601));
  set_workspace(int64_t{600} << 20);  // more than the device has
  CHECK(!line.convolve(1602));
  set_workspace(4096);
  CHECK(!line.convolve(1601));
  CHECK(line.convolve(1603));
  line.compare(1603);
}

TEST("cuDNN computes attention of wide heads in versions that have it, and none in versions that have faults") {
  const auto set_version = control<int64_t>("softwareCudnnVersion");
  if (!set_version) return;
  struct Case {
    int64_t version;
    size_t width, value_width;
    bool is_taken;
  };
  constexpr Case kCases[] = {{92400, 192, 192, true},  {92400, 256, 256, true},  {92400, 264, 264, false},
                             {92400, 256, 128, false}, {90800, 256, 256, false}, {90800, 128, 64, true},
                             {91000, 64, 64, false},   {91001, 64, 64, false},   {91002, 64, 64, true}};
  for (const Case& c : kCases) {
    set_version(c.version);
    Attention sizes{};
    sizes.batch = sizes.heads = 1;
    sizes.queries = 9;
    sizes.keys = 17;
    sizes.width = c.width, sizes.value_width = c.value_width;
    sizes.scale = 1 / std::sqrt(static_cast<double>(c.width));
    const auto attend = [&](const Attention& a) {
      CHECK_EQ(gpu::attend_by_library(a), c.is_taken);
      if (!c.is_taken) gpu::attention(a);
      return true;
    };
    const auto attend_back = [&](const AttentionGrad& g) {
      CHECK_EQ(gpu::attend_back_by_library(g), c.is_taken);
      if (!c.is_taken) gpu::attention_grad(g);
      return true;
    };
    check_attention(DType::BFloat16, sizes, 8, 0, attend, attend_back);
  }
  set_version(0);
}

TEST("a call with the memory of an earlier call makes no new variant pack, and one with other memory does") {
  const auto packs = control<int>("softwareCudnnPacks");
  if (!packs) return;
  constexpr int kMoreThanAreKept = 70;
  Line first, second;
  CHECK(first.convolve(1700));
  const int before = packs(0);
  for (int i = 0; i < 5; i++) CHECK(first.convolve(1700));
  CHECK_EQ(packs(0), before);
  CHECK(second.convolve(1700));
  CHECK_EQ(packs(0), before + 1);
  first.compare(1700);
  second.compare(1700);
  std::vector<std::unique_ptr<Line>> lines;
  for (int i = 0; i < kMoreThanAreKept; i++) CHECK(lines.emplace_back(std::make_unique<Line>())->convolve(1700));
  for (const auto& line : lines) line->compare(1700);
  CHECK(first.convolve(1700));
  first.compare(1700);
}

TEST("attention in the memory of an earlier call takes its own scale") {
  Attention sizes{};
  sizes.batch = sizes.heads = 1;
  sizes.queries = sizes.keys = 16;
  sizes.width = sizes.value_width = 16;
  for (const double scale : {1.0, 0.25}) {
    sizes.scale = scale;
    check_attention(DType::BFloat16, sizes, 0, 0, &gpu::attend_by_library, &gpu::attend_back_by_library);
  }
}

int main() { return run_on_device(true); }
