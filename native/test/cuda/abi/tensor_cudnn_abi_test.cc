// Compares the declarations of tensor/cuda/libraries/cudnn.h with the vendor's if cudnn_graph.h is installed. If the
// library is found, also checks that it has all functions, and that it can plan our graphs for an H200, of which it
// gets only a description.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "tensor/cuda/libraries/dnn_kernels.h"
#include "test/abi.h"

#if __has_include(<cudnn_graph.h>)
#include <cudnn_graph.h>

namespace {

using ringwise::tensor::cuda::Cudnn;
#define COMPARE(name, arguments) \
  static_assert(Same<decltype(Cudnn::name), decltype(&::name)>::value, #name " is not declared as in cudnn_graph.h");
RINGWISE_CUDNN_FUNCTIONS(COMPARE)
static_assert(Same<decltype(Cudnn::cudnnGetVersion), decltype(&::cudnnGetVersion)>::value);
#define COMPARE_NUMBER(name, value) static_assert(static_cast<int>(CUDNN_##name) == value, #name);
RINGWISE_CUDNN_NUMBERS(COMPARE_NUMBER)

constexpr int kHeader = CUDNN_VERSION;

}  // namespace
#else
constexpr int kHeader = 0;
#endif

namespace {

using namespace ringwise;
using namespace ringwise::tensor;
using namespace ringwise::tensor::cuda;

constexpr char kH200[] =
    R"({"cudaDeviceId": 0, "deviceName": "NVIDIA H200", "deviceVer": 900, "driverVer": 13000, "isTccDriver": 0,
"l2CacheSize": 62914560, "maxCtasPerSM": 32, "maxRegistersPerSM": 65536, "maxSharedMemoryPerBlock": 49152,
"maxSharedMemoryPerBlockOptin": 232448, "maxThreadsPerBlock": 1024, "maxThreadsPerSM": 2048, "memClockRateKHz": 3201000,
"multiProcessorCount": 132, "pciDeviceId": 9013, "regsPerBlock": 65536, "reservedSharedMemoryPerBlock": 1024,
"smClockRateKHz": 1980000, "smCountOrigin": 0, "supportCoopLaunch": 1, "totalGlobalMem": 150754820096, "warpSize": 32,
"maxGridSize": [2147483647, 65535, 65535], "maxBlockSize": [1024, 1024, 64]})";

/// Returns the sizes of a 3 × 3 convolution, or, if `is_odd`, of a 5 × 4 convolution in two groups with strides and
/// dilations.
ConvSizes sizes_of(bool is_odd) {
  if (!is_odd) return {32, 1, 64, 128, {28, 28, 28, 28, 3, 3, 1, 1, 1, 1, 1, 1}};
  return {8, 2, 16, 24, {30, 21, 14, 16, 5, 4, 2, 1, 1, 2, 1, 0}};
}

/// Makes the library plan a graph and prints the result. Returns whether it made a plan.
bool is_planned(const char* what, const DnnGraph& graph, const DnnObject& device, DnnExactness exactness) {
  try {
    const DnnPlan plan = graph.plan(nullptr, &device, exactness);
    std::printf("%s: planned, %zu bytes of workspace\n", what, plan.workspace_bytes());
    return true;
  } catch (const DnnRefusal& refusal) {
    std::printf("%s: %s\n", what, refusal.what());
    return false;
  }
}

bool plans_convolutions(const DnnObject& device) {
  bool is_good = true;
  for (const DType dtype : {DType::Float32, DType::Float16, DType::BFloat16}) {
    for (const bool is_odd : {false, true}) {
      for (const Convolution kind : {Convolution::Forward, Convolution::GradInput, Convolution::GradWeight}) {
        const std::string what = std::string("convolution ") + std::to_string(static_cast<int>(kind)) + " of " +
                                 name_of(dtype) + (is_odd ? ", in groups" : "");
        is_good &= is_planned(what.c_str(), convolution_graph(kind, dtype, sizes_of(is_odd), {16, 16, 16}), device,
                              {dtype != DType::Float32});
      }
    }
  }
  return is_good;
}

/// Plans attention with heads of 64 inside a packed projection, as in GPT-2. Returns whether all plans were made.
bool plans_attention(const DnnObject& device) {
  // cuDNN compiles these kernels when it plans them, and needs the driver for that.
  if (!driver().reason.empty()) {
    std::printf("attention: skipped, %s\n", driver().reason.c_str());
    return true;
  }
  bool is_good = true;
  for (const DType dtype : {DType::Float16, DType::BFloat16}) {
    for (const bool causal : {true, false}) {
      constexpr ptrdiff_t kHeads = 12, kWidth = 64, kTime = 1024, kRow = 3 * kHeads * kWidth;
      Attention a{};
      a.dtype = dtype;
      a.batch = 4, a.heads = kHeads, a.queries = a.keys = kTime, a.width = a.value_width = kWidth;
      a.scale = 0.125, a.causal = causal;
      const HeadRows packed{nullptr, kTime * kRow, kWidth, kRow}, single{nullptr, kTime * kRow / 3, kWidth, kRow / 3};
      a.q = a.k = a.v = packed;
      a.out = single;
      const AttentionGrad grad{a, single, packed, packed, packed};
      const std::string what = std::string("attention of ") + name_of(dtype) + (causal ? ", causal" : "");
      is_good &= is_planned(what.c_str(), attention_graph(a), device, {true});
      is_good &= is_planned((what + ", gradient").c_str(), attention_grad_graph(grad), device, {true});
    }
  }
  return is_good;
}

/// Returns whether the compiler that cuDNN uses works once cuDNN has been loaded.
bool compiles() {
  const SharedLibrary nvrtc(
      {"RINGWISE_LIBNVRTC", {"libnvrtc.so.13", "libnvrtc.so.12"}, {"cu13/lib", "cuda_nvrtc/lib"}});
  int (*create)(void**, const char*, const char*, int, const char* const*, const char* const*) = nullptr;
  int (*compile)(void*, int, const char* const*) = nullptr;
  if (!nvrtc.bind("nvrtcCreateProgram", create) || !nvrtc.bind("nvrtcCompileProgram", compile)) {
    std::printf("compiler: skipped, libnvrtc was not found\n");
    return true;
  }
  void* program = nullptr;
  const int status =
      create(&program, "extern \"C\" __global__ void f(float* x) { *x = 1; }", "f.cu", 0, nullptr, nullptr);
  const int compiled = status == 0 ? compile(program, 0, nullptr) : status;
  std::printf("compiler: %s reported %d\n", nvrtc.path().c_str(), compiled);
  return compiled == 0;
}

}  // namespace

int main() {
  if (kHeader)
    std::printf("compared with cudnn_graph.h %d\n", kHeader);
  else
    std::printf("declarations: skipped, cudnn_graph.h is not installed\n");
  const Cudnn& dnn = cudnn();
  if (!dnn.library.is_open()) {
    std::printf("library: skipped, %s\n", dnn.reason.c_str());
    return 0;
  }
  if (!dnn.reason.empty()) {
    std::printf("%s\n", dnn.reason.c_str());
    return 1;
  }
  std::printf("%s: version %zu\n", dnn.library.path().c_str(), dnn.cudnnGetVersion());
  if (!compiles()) return 1;
  DnnObject device(dnn::BACKEND_DEVICEPROP_DESCRIPTOR);
  device.set_values(dnn::ATTR_DEVICEPROP_JSON_REPRESENTATION, dnn::TYPE_CHAR, sizeof kH200, kH200);
  try {
    device.finish();
  } catch (const DnnRefusal& refusal) {
    std::printf("plans: skipped, this version does not plan for a device that is not present: %s\n", refusal.what());
    return 0;
  }
  const bool plans_all = plans_attention(device) & plans_convolutions(device);
  return plans_all ? 0 : 1;
}
