// Operands for the tests of CUDA kernels, which run kernels on the device and on the CPU on equal operands. Each
// operand is an allocation of its own, so that a sanitizer (or compute-sanitizer on a GPU) notices accesses beyond its
// ends. But the software device rounds sizes up to 512 bytes, and host memory has one byte more. The device is the
// software device of software_gpu/, or a GPU with RINGWISE_TEST_GPU=1.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <random>

#include "base/half.h"
#include "tensor/cuda/device/device.h"
#include "tensor/cuda/launch/kernels.h"
#include "test/check.h"
#include "test/cuda/on_device.h"

namespace ringwise::test {

using namespace ringwise::tensor;
namespace gpu = tensor::cuda;  // ringwise::cuda is the driver

inline std::mt19937 random_bits(11);
inline size_t below(size_t limit) { return random_bits() % limit; }

inline const Kernels& cpu = kernels_for(CpuLevel::Baseline);
constexpr DType kTypes[] = {DType::Float32, DType::Float64, DType::Float16, DType::BFloat16,
                            DType::Int32,   DType::Int64,   DType::UInt8,   DType::Bool};

inline double value_at(DType dtype, const void* data, size_t i) {
  switch (dtype) {
    case DType::Float32: return static_cast<const float*>(data)[i];
    case DType::Float64: return static_cast<const double*>(data)[i];
    case DType::Float16: return to_float(static_cast<const Half*>(data)[i]);
    case DType::BFloat16: return to_float(static_cast<const BFloat*>(data)[i]);
    case DType::Int32: return static_cast<const int32_t*>(data)[i];
    case DType::Int64: return static_cast<double>(static_cast<const int64_t*>(data)[i]);
    default: return static_cast<const uint8_t*>(data)[i];
  }
}
inline void set(DType dtype, void* data, size_t i, double value) {
  switch (dtype) {
    case DType::Float32: static_cast<float*>(data)[i] = static_cast<float>(value); break;
    case DType::Float64: static_cast<double*>(data)[i] = value; break;
    case DType::Float16: static_cast<Half*>(data)[i] = to_half(static_cast<float>(value)); break;
    case DType::BFloat16: static_cast<BFloat*>(data)[i] = to_bfloat(static_cast<float>(value)); break;
    case DType::Int32: static_cast<int32_t*>(data)[i] = static_cast<int32_t>(value); break;
    case DType::Int64: static_cast<int64_t*>(data)[i] = static_cast<int64_t>(value); break;
    case DType::UInt8: static_cast<uint8_t*>(data)[i] = static_cast<uint8_t>(std::abs(value)); break;
    default: static_cast<uint8_t*>(data)[i] = value > 0;
  }
}

/// A tensor with equal elements in host memory and in a separate allocation on the device.
class Twin {
 public:
  Twin(DType dtype, size_t count) : dtype_(dtype), count_(count), host_(count * byte_size(dtype) + 1) {
    gpu::check(gpu::driver().cuMemAlloc_v2(&device_, std::max<size_t>(count * byte_size(dtype), 1)), "cuMemAlloc");
    for (size_t i = 0; i < count; i++) set(dtype, host_.data(), i, static_cast<double>(below(81)) / 8 - 5);
    upload();
  }
  ~Twin() { gpu::driver().cuMemFree_v2(device_); }
  Twin(const Twin&) = delete;
  Twin& operator=(const Twin&) = delete;

  DType dtype() const { return dtype_; }
  size_t count() const { return count_; }
  template <class T = void>
  T* host() {
    return reinterpret_cast<T*>(host_.data());
  }
  template <class T = void>
  T* device() const {
    return reinterpret_cast<T*>(device_);
  }
  void upload() { gpu::current_device().upload(device(), host_.data(), count_ * byte_size(dtype_)); }

  /// Compares the device's elements with the host's. The tolerance is relative to their magnitude, and absolute below
  /// magnitude 1.
  void compare(double tolerance, const std::string& what) {
    std::vector<char> got(host_.size());
    gpu::current_device().download(got.data(), device(), count_ * byte_size(dtype_));
    for (size_t i = 0; i < count_; i++) {
      const double x = value_at(dtype_, got.data(), i), y = value_at(dtype_, host_.data(), i);
      if (x == y || (x != x && y != y)) continue;
      if (std::abs(x - y) <= tolerance * std::max(1.0, std::abs(y))) continue;
      fail(__FILE__, __LINE__,
           what + ": element " + std::to_string(i) + " is " + std::to_string(x) + ", not " + std::to_string(y));
      return;
    }
  }

 private:
  DType dtype_;
  size_t count_;
  std::vector<char> host_;
  gpu::DevicePointer device_ = 0;
};

constexpr DType kFloats[] = {DType::Float32, DType::Float64, DType::Float16, DType::BFloat16};
inline DType computing(DType dtype) { return is_half(dtype) ? DType::Float32 : dtype; }

/// A twin whose host elements have the type in which kernels compute: for halves, they are a copy in float32.
class Wide {
 public:
  Wide(DType dtype, size_t count) : twin_(dtype, count) { widen(); }
  /// Multiplies every element on both sides by `factor`.
  Wide(DType dtype, size_t count, double factor) : twin_(dtype, count) {
    for (size_t i = 0; i < count; i++) set(dtype, twin_.host(), i, factor * value_at(dtype, twin_.host(), i));
    twin_.upload();
    widen();
  }
  char* host() { return is_half(twin_.dtype()) ? reinterpret_cast<char*>(wide_.data()) : twin_.host<char>(); }
  char* device() { return twin_.device<char>(); }
  /// Compares both sides. For halves, rounds the host elements to the stored type first; they keep the rounded values.
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

inline double tolerance_of(DType dtype) {
  return dtype == DType::Float16 ? 2e-3 : dtype == DType::BFloat16 ? 1.6e-2 : dtype == DType::Float64 ? 1e-12 : 4e-6;
}

}  // namespace ringwise::test
