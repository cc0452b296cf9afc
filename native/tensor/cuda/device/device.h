// One GPU: its context, its streams, its kernels, its memory, and copies to and from it. A device is opened at first
// use and stays open until the process ends. Threads may share one; each works on the main stream unless it has chosen
// another.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
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

/// A stream, and the number that memory knows it by: 0 is the main one.
struct WorkStream {
  Stream handle = nullptr;
  uint32_t number = 0;
};

class CapturedStep;

/// What the calling thread does on a device.
struct Activity {
  WorkStream stream;             // without a handle: the main stream
  CapturedStep* step = nullptr;  // whose memory is used
  bool is_capturing = false;     // what is started becomes part of the step and does not run
};
constexpr int kMostDevices = 64;
Activity& activity_on(int device);

class Device {
 public:
  /// Streams beside the main one; more than that share them.
  static constexpr uint32_t kMostStreams = 31;

  /// Opens the device. Throws CudaError, or std::runtime_error with the reason why there is none of this index.
  static Device& get(int index);

  /// Makes this the device of the calling thread, which all below requires.
  void enter();

  int index() const { return index_; }
  const std::string& name() const { return name_; }
  int multiprocessors() const { return multiprocessors_; }
  /// Those of the calling thread.
  WorkStream work_stream() const;
  Stream stream() const { return work_stream().handle; }
  /// The number of a stream whose work runs beside that of others.
  uint32_t make_stream();
  WorkStream stream_of(uint32_t number);
  CachingAllocator& memory() { return *memory_; }
  CachingAllocator& pinned() { return *pinned_; }
  /// For what copies work with after its owner has let go of it.
  const std::shared_ptr<CachingAllocator>& pinned_memory();
  const std::shared_ptr<MemorySource> source() const;
  /// Bytes that all allocators together hold from the driver.
  size_t reserved() const;

  /// Memory for whatever the calling thread starts on its stream from now on. Throws OutOfMemory.
  void* allocate(size_t bytes) { return allocator()->allocate(bytes, work_stream().number); }
  /// What runs on that stream may still use it: its next owner comes later in the same order. Never calls the driver.
  void free(void* data);
  /// Memory that collectives can use where it is; see shareable_memory.h. It belongs to a Piece.
  std::shared_ptr<void> allocate_shareable(size_t bytes);
  /// Where the calling thread gets memory.
  const std::shared_ptr<CachingAllocator>& allocator();
  /// Lets go of memory once all that these streams (a bit for each) have been given by then has ended. Never calls the
  /// driver.
  void retire(std::shared_ptr<void> memory, uint32_t streams);
  /// The same, once this mark has been passed. Takes over the mark.
  void retire(std::shared_ptr<void> memory, Event mark);
  /// The place that the calling thread's stream has come to. Belongs to the caller, until is_passed() or retire() takes
  /// it.
  Event mark();
  /// What `after` is given from now on waits for all that `before` has been given.
  void order(Stream before, Stream after);
  /// Whether all before the mark has ended; the mark is gone then.
  bool is_passed(Event mark);
  /// Gives what is free back to the driver. Nothing may be running.
  void empty_caches();

  /// Starts a kernel with one block of arguments. Returns at once.
  template <class Arguments>
  void launch(KernelId kernel, Grid grid, int threads, const Arguments& arguments) {
    static_assert(std::is_trivially_copyable_v<Arguments> && sizeof(Arguments) <= 4096);
    launch(kernel, grid, threads, &arguments, sizeof arguments);
  }

  /// `from` may be changed as soon as this returns. Waits for earlier uploads when more than 4 MiB are under way.
  void upload(void* to, const void* from, size_t bytes);
  /// As upload, through as much pinned memory as it needs, and never waits.
  void start_upload(void* to, const void* from, size_t bytes);
  /// Waits for everything before it on the stream. Throws what kernels have noted by fault().
  void download(void* to, const void* from, size_t bytes);
  /// Copies into pinned memory.
  void start_download(void* pinned, const void* from, size_t bytes);
  /// Calls `done` when the stream has come here, on a thread of the driver, which must not call CUDA. Also when the
  /// device fails, with the status of that: cuLaunchHostFunc would be forgotten then, and whoever waits would wait
  /// forever.
  static void call_back(Stream stream, StreamCallback done, void* data);
  void copy(void* to, const void* from, size_t bytes);
  /// Waits for all streams.
  void synchronize();
  /// Waits for one.
  void synchronize(uint32_t stream);

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

  struct Retired {
    std::shared_ptr<void> memory;
    uint32_t streams;
    std::vector<Event> events;  // one for each stream, once the driver may be called
  };

  explicit Device(int index);
  bool is_over(Retired& each);
  void reclaim();
  void reclaim_when_allowed();
  Event take_event();
  void launch(KernelId kernel, Grid grid, int threads, const void* arguments, size_t bytes);
  Kernel kernel_of(KernelId id);
  Slot& next_slot();

  static constexpr size_t kChunk = size_t{1} << 20;
  static constexpr int kSlots = 4;

  int index_;
  std::string name_;
  int multiprocessors_ = 1;
  Context context_ = nullptr;
  std::array<std::atomic<Stream>, kMostStreams + 1> streams_ = {};  // the main one first
  uint32_t made_ = 0;                                               // how many were asked for
  std::mutex stream_mutex_;
  int32_t* fault_ = nullptr;
  std::shared_ptr<DeviceMemory> device_source_;
  std::shared_ptr<MemorySource> pinned_source_;
  std::shared_ptr<CachingAllocator> memory_, pinned_;
  std::unique_ptr<ShareableMemory> shareable_;

  std::mutex retired_mutex_;
  std::atomic<bool> has_retired_ = false;
  std::vector<Retired> retired_;
  std::vector<Event> spare_events_;

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
/// That device; where there is none, one that is open already, or else the first. Enters it. Throws as get().
Device& any_device();

/// Device memory in use, and the streams that have worked with it. A Block of a device has one as its keeper.
class Piece {
 public:
  /// New memory for the calling thread's stream. Throws OutOfMemory.
  Piece(Device& device, size_t bytes);
  /// Shareable memory for the calling thread's stream.
  Piece(Device& device, std::shared_ptr<void> memory);
  /// Memory that `owner` keeps. Where the owner's own stream is told, what the calling thread's stream is given from
  /// now on comes after it, and the owner is let go once that stream comes after all that works with the memory.
  Piece(Device& device, void* data, std::shared_ptr<void> owner, std::optional<Stream> owners);
  /// Gives the memory back for when all that works with it has ended.
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
  uint32_t own_ = 0, streams_ = 0;  // a bit for each stream
  std::shared_ptr<void> owner_;
  std::optional<Stream> owners_;
};

/// Notes that what the calling thread starts next works with this memory of a device.
void touch(const Block& block);

}  // namespace ringwise::tensor::cuda
