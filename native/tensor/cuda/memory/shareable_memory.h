// Device memory that other processes and devices can map. Once it is registered, NCCL accesses it over NVLink without
// intermediate copies, which is impossible with memory of cuMemAlloc. Each piece is a separate allocation with its own
// address range, in multiples of the granularity that the driver recommends. Pieces are not cached, because they are
// few, large and long-lived.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "tensor/cuda/device/driver.h"

namespace ringwise::tensor::cuda {

/// The shareable memory of one device. Must outlive its pieces.
class ShareableMemory {
 public:
  ShareableMemory(int device, std::string name);

  /// Returns a new piece, which must not be released before all work that uses it has ended. Returns null if the caller
  /// should use other memory, because the device or driver does not support it or the piece is too small to benefit.
  /// NCCL does not specify how it treats ranks with different kinds of memory, so on equal devices only the size
  /// decides. Throws OutOfMemory.
  std::shared_ptr<void> allocate(size_t bytes);
  /// Returns the bytes of all pieces.
  size_t held() const { return held_; }

  /// Smallest size of a piece in bytes. NCCL sends smaller messages mostly by low-latency protocols, which use its own
  /// buffers even if memory is registered; and a piece takes at least 2 MiB, most of which would be padding.
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
