// Caches the cuDNN plans of one device, by the parameters on which they depend.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "tensor/cuda/device/device.h"
#include "tensor/cuda/libraries/cudnn_graph.h"

namespace ringwise::tensor::cuda {

class DnnPlans {
 public:
  using Key = std::vector<int64_t>;

  /// Returns the plans of a device; null if cuDNN cannot be used.
  static DnnPlans* of(Device& device);

  /// Runs the plan for `key`, whose graph `make` returns at the first use. Returns false if cuDNN refused it.
  template <class Make>
  bool run(Device& device, const Key& key, DnnExactness exactness, Make make,
           const std::vector<std::pair<int64_t, void*>>& bindings) {
    const std::lock_guard lock(mutex_);  // also guards the handle
    if (plans_.size() >= kMostPlans && !plans_.contains(key)) plans_.clear();
    const auto [found, is_new] = plans_.try_emplace(key);
    if (is_new) found->second = planned(make, exactness);
    if (!found->second) return false;
    run(device, *found->second, bindings);
    return true;
  }

 private:
  static constexpr size_t kMostPlans = 1024;

  template <class Make>
  std::unique_ptr<const DnnPlan> planned(Make make, DnnExactness exactness) const {
    try {
      return std::make_unique<const DnnPlan>(make().plan(handle_, nullptr, exactness));
    } catch (const DnnRefusal&) {
      return nullptr;
    }
  }
  void run(Device& device, const DnnPlan& plan, const std::vector<std::pair<int64_t, void*>>& bindings);

  std::mutex mutex_;
  DnnHandle handle_ = nullptr;
  std::map<Key, std::unique_ptr<const DnnPlan>> plans_;
};

/// Returns the constant dnn::DATA_… of a float type.
int dnn_type(DType dtype);
/// Returns the largest power of two up to 16 that divides an address.
int64_t dnn_alignment(const void* data);

}  // namespace ringwise::tensor::cuda
