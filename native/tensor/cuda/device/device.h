// One GPU: its context, streams, kernels and memory, and copies to and from it. A device is opened at first use and
// stays open until the process ends. Threads may share a device; each uses the main stream unless it has chosen
// another.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "tensor/block_table.h"
#include "tensor/cuda/device/driver.h"
#include "tensor/cuda/images/images.h"
#include "tensor/cuda/memory/caching_allocator.h"
#include "tensor/cuda/memory/shareable_memory.h"

namespace ringwise::tensor::cuda {

struct Grid {
  unsigned x = 1, y = 1, z = 1;
};

/// A stream and its number, by which allocators distinguish streams; 0 is the main one.
struct WorkStream {
  Stream handle = nullptr;
  uint32_t number = 0;
};

class CapturedStep;

/// A thread's current stream and captured step on a device.
struct Activity {
  WorkStream stream;             // a null handle means the main stream
  CapturedStep* step = nullptr;  // the step from whose memory the thread allocates, or null
  bool is_capturing = false;     // work becomes part of the step and does not run
};
constexpr int kMostDevices = 64;
/// Returns the calling thread's own, on a device.
Activity& activity_on(int device);

class Device {
 public:
  /// Most streams beside the main one; further streams share them.
  static constexpr uint32_t kMostStreams = 31;

  /// Returns the device, and opens it at first use. Throws CudaError, or std::runtime_error with the reason why there
  /// is no device of this index.
  static Device& get(int index);

  /// Makes this device's context current on the calling thread, which the functions below require.
  void enter();

  int index() const { return index_; }
  const std::string& name() const { return name_; }
  int multiprocessors() const { return multiprocessors_; }
  /// Return the calling thread's current stream on this device.
  WorkStream work_stream() const;
  Stream stream() const { return work_stream().handle; }
  /// Makes a stream whose work runs concurrently with that of others; after kMostStreams calls, shares an earlier one.
  /// Returns its number.
  uint32_t make_stream();
  WorkStream stream_of(uint32_t number);
  CachingAllocator& memory() { return *memory_; }
  CachingAllocator& pinned() { return *pinned_; }
  /// Returns the pinned allocator as a shared pointer, for memory that copies use after its owner has released it.
  const std::shared_ptr<CachingAllocator>& pinned_memory();
  const std::shared_ptr<MemorySource> source() const;
  /// Returns the bytes that all allocators together have taken from the driver.
  size_t reserved() const;

  /// Allocates memory for later work on the calling thread's stream. Throws OutOfMemory.
  void* allocate(size_t bytes) { return allocator()->allocate(bytes, work_stream().number); }
  /// Frees memory, which running work of its stream may still use: its next owner runs later on the same stream. Never
  /// calls the driver.
  void free(void* data);
  /// Allocates memory that collectives can access in place; see shareable_memory.h. A Piece must own the result.
  std::shared_ptr<void> allocate_shareable(size_t bytes);
  /// Returns the allocator from which the calling thread allocates: the device's, or that of the step that it has
  /// entered.
  const std::shared_ptr<CachingAllocator>& allocator();
  /// Releases memory once all work that these streams (a bit set) have now has ended. Never calls the driver.
  void retire(std::shared_ptr<void> memory, uint32_t streams);
  /// Releases memory once `stream` has passed `mark`, which was recorded on it. Takes ownership of the mark.
  void retire(std::shared_ptr<void> memory, Event mark, uint32_t stream);
  /// Records an event on the calling thread's stream. The caller owns it until is_passed() or retire() takes it.
  Event mark();
  /// Makes later work of `after` wait for all work that `before` has now.
  void order(Stream before, Stream after);
  /// Returns whether all work before the mark has ended; if so, frees the mark.
  bool is_passed(Event mark);
  /// Returns free memory to the driver. Waits for work that uses it.
  void empty_caches();
  /// Waits for all work that uses retired memory, and releases this memory.
  void settle();

  /// Launches a kernel on the calling thread's stream, with its arguments as one struct. Returns at once.
  template <class Arguments>
  void launch(KernelId kernel, Grid grid, int threads, const Arguments& arguments) {
    static_assert(std::is_trivially_copyable_v<Arguments> && sizeof(Arguments) <= 4096);
    launch(kernel, grid, threads, &arguments, sizeof arguments);
  }

  /// Copies to the device. `from` may be changed as soon as this returns. Waits for earlier copies where more than
  /// 4 MiB would be in flight.
  void upload(void* to, const void* from, size_t bytes);
  /// Copies to the device like upload(), but through as much pinned memory as needed. Waits for the oldest of these
  /// copies while more than kMostUploads bytes would be in flight.
  void start_upload(void* to, const void* from, size_t bytes);
  static constexpr size_t kMostUploads = size_t{256} << 20;
  /// Copies to the host, and waits for the copy and all earlier work of the stream. Throws the faults that kernels have
  /// noted (check_fault).
  void download(void* to, const void* from, size_t bytes);
  /// Starts a copy to pinned memory, which must stay as it is until the stream has reached this point.
  void start_download(void* pinned, const void* from, size_t bytes);
  /// Makes a thread of the driver call `done` once the stream has reached this point; `done` must not call CUDA. If the
  /// device fails, `done` gets the error status. (The function of cuLaunchHostFunc is not called then, so a waiting
  /// caller would hang.)
  static void call_back(Stream stream, StreamCallback done, void* data);
  /// Starts a copy within the device.
  void copy(void* to, const void* from, size_t bytes);
  /// Blocks until all streams have ended their work.
  void synchronize();
  /// Blocks until one stream has ended its work.
  void synchronize(uint32_t stream);

  /// Returns the place where kernels note that an index is out of range: 4 bytes that host and device can access.
  int32_t* fault() const { return fault_; }
  /// Throws std::out_of_range if a kernel that has ended has noted a fault, and clears it.
  void check_fault();

 private:
  /// kChunk bytes of pinned memory, and the event after the last copy that used them.
  struct Slot {
    char* data = nullptr;
    Event event = nullptr;
  };
  class DeviceMemory;
  class PinnedMemory;

  struct Retired {
    std::shared_ptr<void> memory;
    uint32_t streams;
  };
  /// Memory that is released once a stream has passed an event. Memory of several streams is in a batch of each.
  struct Batch {
    Event passed;
    std::vector<std::shared_ptr<void>> memory;
  };
  struct Upload {
    Event done;
    std::shared_ptr<void> staged;
    size_t bytes;
  };

  explicit Device(int index);
  void reclaim();
  uint32_t all_streams() const;
  void await_uploads(size_t next_bytes);
  void reclaim_when_allowed();
  Event take_event();
  void launch(KernelId kernel, Grid grid, int threads, const void* arguments, size_t bytes);
  void load_kernels();
  Slot& next_slot();

  static constexpr size_t kChunk = size_t{1} << 20;
  static constexpr int kSlots = 4;

  int index_;
  std::string name_;
  int multiprocessors_ = 1;
  Context context_ = nullptr;
  std::array<std::atomic<Stream>, kMostStreams + 1> streams_ = {};  // the main one first
  uint32_t made_ = 0;                                               // number of make_stream() calls
  std::mutex stream_mutex_;
  int32_t* fault_ = nullptr;
  std::shared_ptr<DeviceMemory> device_source_;
  std::shared_ptr<MemorySource> pinned_source_;
  std::shared_ptr<CachingAllocator> memory_, pinned_;
  std::unique_ptr<ShareableMemory> shareable_;

  std::mutex retired_mutex_;
  std::atomic<bool> has_retired_ = false;
  std::vector<Retired> retired_;                             // since the last reclaim()
  std::array<std::deque<Batch>, kMostStreams + 1> batches_;  // by stream, oldest first
  std::vector<Event> spare_events_;

  std::mutex upload_mutex_;     // guards uploads_ and upload_bytes_
  std::deque<Upload> uploads_;  // copies of start_upload that may be running, oldest first
  size_t upload_bytes_ = 0;     // sum over uploads_

  std::array<Kernel, static_cast<size_t>(KernelId::Count)> kernels_ = {};

  std::mutex copy_mutex_;  // guards slots_ and next_; slots are used in turn
  Slot slots_[kSlots];
  int next_ = 0;
};

/// Returns a name such as "cuda:0"; "cpu" for -1.
inline std::string name_of_device(int index) { return index < 0 ? "cpu" : "cuda:" + std::to_string(index); }

/// Returns the device that the calling thread entered last.
Device& current_device();
/// Enters and returns the device that the calling thread entered last, else one that is already open, else the first.
/// Throws like get().
Device& any_device();

/// Device memory in use, and the streams that have used it. The keeper of a device Block is a Piece.
class Piece {
 public:
  /// Allocates memory for the calling thread's stream. Throws OutOfMemory.
  Piece(Device& device, size_t bytes);
  /// Takes shareable memory for the calling thread's stream.
  Piece(Device& device, std::shared_ptr<void> memory);
  /// Takes memory that `owner` keeps alive. If the owner's stream `owners` is given, later work of the calling thread's
  /// stream runs after that stream's present work, and `owner` is released once its stream is ordered after all work
  /// that uses the memory.
  Piece(Device& device, void* data, std::shared_ptr<void> owner, std::optional<Stream> owners);
  /// Releases the memory, which is reused or freed after all work that uses it has ended.
  ~Piece();
  Piece(const Piece&) = delete;
  Piece& operator=(const Piece&) = delete;

  void* data() const { return data_; }
  const CachingAllocator* from() const { return from_.get(); }
  void used_on(uint32_t stream) { streams_ |= 1u << stream; }

 private:
  void give_back() noexcept;

  Device& device_;
  std::shared_ptr<CachingAllocator> from_;
  void* data_;
  uint32_t own_ = 0, streams_ = 0;  // bit sets of streams
  std::shared_ptr<void> owner_;
  std::optional<Stream> owners_;
};

/// Notes that the next work of the calling thread uses this device memory.
void touch(const Block& block);

}  // namespace ringwise::tensor::cuda
