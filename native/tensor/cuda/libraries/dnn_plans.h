// The plans of cuDNN for one device, by whatever they depend on.
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

  /// Those of a device; null where the library cannot be used.
  static DnnPlans* of(Device& device);

  /// Runs the plan for `key`, which `make` describes at its first use. False when the library refused.
  template <class Make>
  bool run(Device& device, const Key& key, DnnExactness exactness, Make make,
           const std::vector<std::pair<int64_t, void*>>& bindings) {
    const std::lock_guard lock(mutex_);  // of the handle too
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

/// dnn::DATA_… of a float type.
int dnn_type(DType dtype);
/// The largest power of two up to 16 that divides an address.
int64_t dnn_alignment(const void* data);

}  // namespace ringwise::tensor::cuda
