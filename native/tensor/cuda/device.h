// One GPU: its context, the stream on which everything runs in the order of the calls, its kernels, its memory, and
// copies to and from it. A device is opened at first use and stays open until the process ends. Threads may share one.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "tensor/cuda/caching_allocator.h"
#include "tensor/cuda/driver.h"
#include "tensor/cuda/images.h"

namespace ringwise::tensor::cuda {

struct Grid {
  unsigned x = 1, y = 1, z = 1;
};

class Device {
 public:
  /// Opens the device. Throws CudaError, or std::runtime_error with the reason why there is none of this index.
  static Device& get(int index);

  /// Makes this the device of the calling thread, which all below requires.
  void enter();

  const std::string& name() const { return name_; }
  int multiprocessors() const { return multiprocessors_; }
  Stream stream() const { return stream_; }
  CachingAllocator& memory() { return *memory_; }
  CachingAllocator& pinned() { return *pinned_; }

  /// Memory for whatever runs on the stream from now on. Throws OutOfMemory.
  void* allocate(size_t bytes) { return memory_->allocate(bytes, kStreamNumber); }
  /// What runs on the stream may still use it: its next owner comes later in the same order.
  void free(void* data) { memory_->free(data); }

  /// Starts a kernel with one block of arguments. Returns at once.
  template <class Arguments>
  void launch(KernelId kernel, Grid grid, int threads, const Arguments& arguments) {
    static_assert(std::is_trivially_copyable_v<Arguments> && sizeof(Arguments) <= 4096);
    launch(kernel, grid, threads, &arguments, sizeof arguments);
  }

  /// `from` may be changed as soon as this returns.
  void upload(void* to, const void* from, size_t bytes);
  /// Waits for everything before it on the stream. Throws what kernels have noted by fault().
  void download(void* to, const void* from, size_t bytes);
  /// Copies into pinned memory and calls `done` on a thread of the driver, which must not call CUDA.
  void start_download(void* pinned, const void* from, size_t bytes, HostFunction done, void* data);
  void copy(void* to, const void* from, size_t bytes);
  void synchronize();

  /// Where kernels note that an index lies outside: 4 bytes that host and device see.
  int32_t* fault() const { return fault_; }
  /// Throws std::out_of_range once when a kernel that has ended has noted something.
  void check_fault();

 private:
  struct Slot {
    char* data = nullptr;
    Event event = nullptr;
  };
  class DeviceMemory;
  class PinnedMemory;

  explicit Device(int index);
  void launch(KernelId kernel, Grid grid, int threads, const void* arguments, size_t bytes);
  Kernel kernel_of(KernelId id);
  Slot& next_slot();

  static constexpr uint64_t kStreamNumber = 0;
  static constexpr size_t kChunk = size_t{1} << 20;
  static constexpr int kSlots = 4;

  int index_;
  std::string name_;
  int multiprocessors_ = 1;
  Context context_ = nullptr;
  Stream stream_ = nullptr;
  int32_t* fault_ = nullptr;
  std::unique_ptr<MemorySource> device_source_, pinned_source_;
  std::unique_ptr<CachingAllocator> memory_, pinned_;

  std::mutex load_mutex_;
  Library libraries_[static_cast<int>(Image::Count)] = {};
  std::atomic<Kernel> kernels_[static_cast<int>(KernelId::Count)] = {};

  std::mutex copy_mutex_;  // slots are taken in turn
  Slot slots_[kSlots];
  int next_ = 0;
};

/// "cuda:0"; "cpu" for -1.
inline std::string name_of_device(int index) { return index < 0 ? "cpu" : "cuda:" + std::to_string(index); }

/// The device that the calling thread has entered last.
Device& current_device();

}  // namespace ringwise::tensor::cuda
