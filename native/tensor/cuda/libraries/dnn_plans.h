// Caches the cuDNN plans of one device, by the parameters on which they depend. The least recently used plan leaves the
// cache. A plan is destroyed when nothing uses it any more: the cache, work that runs, and captured steps.
#pragma once

#include <list>
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
  using Bindings = std::vector<std::pair<int64_t, void*>>;

  /// Returns the plans of a device; null if cuDNN cannot be used.
  static DnnPlans* of(Device& device);

  /// Starts the plan for `key`, whose graph `make` returns at the first use. Returns false if the caller must compute
  /// the result itself: cuDNN has no plan, or has failed to run it, now or earlier, or memory is short for its
  /// workspace.
  template <class Make>
  bool run(Device& device, const Key& key, DnnExactness exactness, Make make, const Bindings& bindings) {
    const std::lock_guard lock(mutex_);  // also guards the handle
    const auto found = plans_.find(key);
    if (found != plans_.end()) {
      by_use_.splice(by_use_.begin(), by_use_, found->second.place);
      return run(device, found->second, bindings);
    }
    return run(device, add(device, key, planned(make, exactness)), bindings);
  }

 private:
  static constexpr size_t kMostPlans = 1024;

  struct Entry {
    std::shared_ptr<DnnPlan> plan;  // null if cuDNN refused it
    uint32_t streams = 0;           // bit set of the streams on which it has run
    std::list<Key>::iterator place;
  };

  template <class Make>
  std::shared_ptr<DnnPlan> planned(Make make, DnnExactness exactness) const {
    try {
      return std::make_shared<DnnPlan>(make().plan(handle_, nullptr, exactness));
    } catch (const DnnRefusal&) {
      return nullptr;
    }
  }
  Entry& add(Device& device, const Key& key, std::shared_ptr<DnnPlan> plan);
  bool run(Device& device, Entry& entry, const Bindings& bindings);
  static void retire(Device& device, Entry& entry);

  std::mutex mutex_;
  DnnHandle handle_ = nullptr;
  std::map<Key, Entry> plans_;
  std::list<Key> by_use_;  // the keys of plans_, last used first
};

/// Returns the constant dnn::DATA_… of a float type.
int dnn_type(DType dtype);
/// Returns the largest power of two up to 16 that divides an address.
int64_t dnn_alignment(const void* data);

}  // namespace ringwise::tensor::cuda
