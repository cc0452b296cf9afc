#include "tensor/cuda/libraries/dnn_plans.h"

#include <bit>

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

void DnnPlans::run(Device& device, const DnnPlan& plan, const std::vector<std::pair<int64_t, void*>>& bindings) {
  const size_t bytes = plan.workspace_bytes();
  // Freed right after the launch: the next owner on this stream runs after the plan.
  void* workspace = bytes > 0 ? device.allocate(bytes) : nullptr;
  try {
    plan.run(handle_, device.stream(), bindings, workspace);
  } catch (...) {
    if (workspace) device.free(workspace);
    throw;
  }
  if (workspace) device.free(workspace);
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
