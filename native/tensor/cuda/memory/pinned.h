// Host memory that a device copies to and from by itself, without a step through other memory and without waiting.
// Whoever holds it may let go while copies are under way: it goes back to the cache once they have ended.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "tensor/cuda/device/device.h"

namespace ringwise::tensor::cuda {

/// Belongs to one thread.
class Pinned {
 public:
  /// Throws OutOfMemory. `device` lends its cache; every device may copy.
  Pinned(Device& device, size_t bytes);
  /// Never calls the driver.
  ~Pinned();
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;

  char* data() const { return data_; }
  size_t bytes() const { return bytes_; }

  /// Starts a copy on the calling thread's stream of a device that it has entered.
  void start_upload(Device& to_device, void* to, size_t offset, size_t bytes);
  void start_download(Device& from_device, size_t offset, const void* from, size_t bytes);
  /// Whether all copies have ended.
  bool is_idle();

 private:
  struct Copy {
    Device* device;
    Event end;
  };
  void note(Device& device, int status, const char* what);

  std::shared_ptr<CachingAllocator> from_;
  char* data_;
  size_t bytes_;
  std::vector<Copy> copies_;  // that had not ended when somebody looked last
};

}  // namespace ringwise::tensor::cuda
