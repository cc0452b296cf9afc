// Device memory that other processes and devices can map: NCCL reaches it over NVLink without a copy of its own once it
// is registered, which it does not with memory of cuMemAlloc. Each piece is an allocation of its own at the head of a
// range of addresses of its own, in multiples of what the driver recommends. Nothing is cached: pieces are few, large
// and long-lived.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "tensor/cuda/device/driver.h"

namespace ringwise::tensor::cuda {

/// Of one device. Outlives its pieces.
class ShareableMemory {
 public:
  ShareableMemory(int device, std::string name);

  /// A new piece, which must not be let go before all that works with it has ended. Null where other memory is to be
  /// used: the device or the driver offers nothing, or the piece is so small that it would gain nothing. NCCL does not
  /// tell how it takes ranks whose memory is of different kinds, so on equal devices nothing but the size decides.
  /// Throws OutOfMemory.
  std::shared_ptr<void> allocate(size_t bytes);
  /// Bytes that pieces hold from the driver.
  size_t held() const { return held_; }

  /// Below, NCCL sends most by protocols for low latency, which go through its own buffers, registered or not; and a
  /// piece that takes 2 MiB at least would be more padding than memory.
  static constexpr size_t kLeast = size_t{1} << 20;

 private:
  struct Piece;

  int create(Piece& piece, size_t bytes);
  void checked(int status, const char* what, size_t bytes) const;

  const std::string name_;
  std::mutex mutex_;
  bool is_offered_;
  AllocationProperties properties_ = {};
  std::atomic<size_t> held_ = 0;
};

}  // namespace ringwise::tensor::cuda
