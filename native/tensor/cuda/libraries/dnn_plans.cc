#include "tensor/cuda/libraries/dnn_plans.h"

#include <bit>
#include <utility>

#include "tensor/cuda/device/captured_step.h"

namespace ringwise::tensor::cuda {

DnnPlans* DnnPlans::of(Device& device) {
  static std::mutex mutex;
  static auto& all = *new std::map<int, DnnPlans>;  // never destroyed, like devices
  if (!cudnn().reason.empty()) return nullptr;
  const std::lock_guard lock(mutex);
  const auto [found, is_new] = all.try_emplace(device.index());
  DnnPlans& plans = found->second;
  if (is_new && cudnn().cudnnCreate(&plans.handle_) != 0) plans.handle_ = nullptr;
  return plans.handle_ ? &plans : nullptr;
}

/// Adds a plan, which may be null, to a cache that does not have its key. Makes room for it.
DnnPlans::Entry& DnnPlans::add(Device& device, const Key& key, std::shared_ptr<DnnPlan> plan) {
  if (plans_.size() == kMostPlans) {
    const auto oldest = plans_.find(by_use_.back());
    retire(device, oldest->second);
    plans_.erase(oldest);
    by_use_.pop_back();
  }
  by_use_.push_front(key);
  return plans_.emplace(key, Entry{std::move(plan), 0, by_use_.begin()}).first->second;
}

/// Drops the plan of an entry. It is destroyed after the work that it has started.
void DnnPlans::retire(Device& device, Entry& entry) {
  if (entry.plan) device.retire(std::move(entry.plan), entry.streams);
}

bool DnnPlans::run(Device& device, Entry& entry, const Bindings& bindings) {
  if (!entry.plan) return false;
  void* workspace = nullptr;
  const auto free_workspace = [&] {
    // Freed right after the launch: the next owner on this stream runs after the plan.
    if (workspace) device.free(workspace);
  };
  try {
    if (const size_t bytes = entry.plan->workspace_bytes(); bytes > 0) workspace = device.allocate(bytes);
    if (CapturedStep* step = step_being_captured(device.index()))
      step->hold_other(entry.plan);
    else
      entry.streams |= 1u << device.work_stream().number;
    entry.plan->run(handle_, device.stream(), bindings, workspace);
  } catch (const OutOfMemory&) {
    free_workspace();
    return false;
  } catch (const DnnRefusal&) {
    free_workspace();
    retire(device, entry);
    return false;
  } catch (...) {
    free_workspace();
    throw;
  }
  free_workspace();
  return true;
}

int dnn_type(DType dtype) {
  switch (dtype) {
    case DType::Float64: return dnn::DATA_DOUBLE;
    case DType::Float16: return dnn::DATA_HALF;
    case DType::BFloat16: return dnn::DATA_BFLOAT16;
    default: return dnn::DATA_FLOAT;
  }
}

int64_t dnn_alignment(const void* data) {
  return int64_t{1} << std::countr_zero(reinterpret_cast<uintptr_t>(data) | 16);
}

}  // namespace ringwise::tensor::cuda
