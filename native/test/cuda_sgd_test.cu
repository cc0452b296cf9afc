// The fused optimiser step on the device against the CPU kernel. Without a device it says so and passes.
#include <cuda_runtime.h>

#include <cstdio>
#include <utility>

#include "check.h"
#include "tensor/cuda/device.h"
#include "tensor/cuda/sgd.h"
#include "tensor/kernels.h"

using namespace ringwise;

namespace {

std::vector<float> noise(size_t count, unsigned seed) {
  std::vector<float> values(count);
  unsigned state = seed * 7919 + 12345;
  for (float& value : values) {
    state = state * 1664525 + 1013904223;
    value = static_cast<float>(state >> 8) / (1 << 22) - 2;
  }
  return values;
}

void check(cudaError_t status) {
  if (status != cudaSuccess) throw std::runtime_error(cudaGetErrorString(status));
}

/// A copy of `values` in device memory, `offset` floats into its allocation, with one more behind it that no kernel
/// may touch.
class OnDevice {
 public:
  OnDevice(const std::vector<float>& values, size_t offset) : count_(values.size()), offset_(offset) {
    check(cudaMalloc(&base_, (offset + count_ + 1) * sizeof(float)));
    check(cudaMemcpy(data(), values.data(), count_ * sizeof(float), cudaMemcpyHostToDevice));
    check(cudaMemcpy(data() + count_, &kSentinel, sizeof(float), cudaMemcpyHostToDevice));
  }
  ~OnDevice() { cudaFree(base_); }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;
  float* data() const { return base_ + offset_; }
  std::vector<float> read() const {
    std::vector<float> values(count_ + 1);
    check(cudaMemcpy(values.data(), data(), values.size() * sizeof(float), cudaMemcpyDeviceToHost));
    CHECK_EQ(values.back(), kSentinel);
    values.pop_back();
    return values;
  }

 private:
  static constexpr float kSentinel = 12345;
  size_t count_, offset_;
  float* base_ = nullptr;
};
constexpr float OnDevice::kSentinel;

void compare(const std::vector<float>& got, const std::vector<float>& want) {
  // The two compilers fuse multiplications and additions in different places.
  for (size_t i = 0; i < want.size(); i++) CHECK_NEAR(got[i], want[i], 2e-6);
}

void three_steps(size_t count, size_t offset, const tensor::SgdOptions& base) {
  const tensor::Kernels& cpu = tensor::kernels_for(tensor::CpuLevel::Avx512);
  std::vector<float> param = noise(count, 1), velocity(count);
  const OnDevice device_param(param, offset), device_velocity(velocity, offset);
  const bool has_velocity = base.momentum != 0;
  for (int step = 0; step < 3; step++) {
    tensor::SgdOptions options = base;
    options.first = step == 0;
    const std::vector<float> grad = noise(count, 10 + step);
    const OnDevice device_grad(grad, offset);
    tensor::OptimizerRule rule;
    rule.lr = base.lr;
    rule.weight_decay = base.weight_decay;
    rule.momentum = base.momentum;
    rule.smoothing = base.dampening;
    rule.variant = base.nesterov;
    const tensor::OptimizerTensor tensor{DType::Float32, count, step + 1.0, param.data(), grad.data(),
                                         {has_velocity ? velocity.data() : nullptr, nullptr, nullptr}};
    cpu.optimize(rule, &tensor, 1);
    const char* error = tensor::sgd_cuda(device_param.data(), device_grad.data(),
                                         has_velocity ? device_velocity.data() : nullptr, options, count, nullptr);
    CHECK(error == nullptr);
    check(cudaDeviceSynchronize());
  }
  compare(device_param.read(), param);
  compare(device_velocity.read(), velocity);
}

}  // namespace

TEST("three steps give what the CPU kernel gives, for all options, sizes and alignments") {
  for (const float momentum : {0.0f, 0.9f}) {
    for (const bool nesterov : {false, true}) {
      tensor::SgdOptions options;
      options.lr = 0.1f;
      options.weight_decay = 0.01f;
      options.momentum = momentum;
      options.nesterov = nesterov;
      options.dampening = nesterov ? 0.0f : 0.3f;
      for (const size_t count : {0, 1, 3, 4, 5, 1023, 1024, 100003}) {
        for (const size_t offset : {0, 1}) three_steps(count, offset, options);
      }
    }
  }
}

int main() {
  const tensor::CudaInfo cuda = tensor::cuda_info();
  if (cuda.devices.empty()) {
    std::printf("0 devices: %s\n", cuda.reason.c_str());
    return 0;
  }
  return test::run_all();
}
