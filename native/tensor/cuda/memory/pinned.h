// Pinned host memory, which devices access directly, so that copies need no intermediate memory and the host does not
// wait. The owner may destroy a Pinned during copies; its memory returns to the cache after they have ended.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "tensor/cuda/device/device.h"

namespace ringwise::tensor::cuda {

/// Must be used by one thread only.
class Pinned {
 public:
  /// Allocates from the cache of `device`; copies may use any device. Throws OutOfMemory.
  Pinned(Device& device, size_t bytes);
  /// Releases the memory. Never calls the driver.
  ~Pinned();
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;

  char* data() const { return data_; }
  size_t bytes() const { return bytes_; }

  /// Start a copy on the current stream of a device that the calling thread has entered.
  void start_upload(Device& to_device, void* to, size_t offset, size_t bytes);
  void start_download(Device& from_device, size_t offset, const void* from, size_t bytes);
  /// Returns whether all copies have ended. May make another device the current one of the calling thread.
  bool is_idle();

 private:
  struct Copy {
    Device* device;
    Event end;
    uint32_t stream;
  };
  /// Remembers a copy that was just started with this status.
  void note(Device& device, int status, const char* what);

  std::shared_ptr<CachingAllocator> from_;
  char* data_;
  size_t bytes_;
  std::vector<Copy> copies_;  // copies that had not ended at the last check
};

}  // namespace ringwise::tensor::cuda
