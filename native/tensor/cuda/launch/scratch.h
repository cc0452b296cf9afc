// Device memory for the launches of one kernel call.
#pragma once

#include "tensor/cuda/device/device.h"

namespace ringwise::tensor::cuda {

/// Owns memory of the current device. Launches on the calling thread's stream may use it until the owner is destroyed;
/// the next owner of the memory runs later on the same stream.
class Scratch {
 public:
  explicit Scratch(size_t bytes) : data_(bytes > 0 ? current_device().allocate(bytes) : nullptr) {}
  ~Scratch() {
    if (data_) current_device().free(data_);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  void* data() const { return data_; }

 private:
  void* data_;
};

}  // namespace ringwise::tensor::cuda
