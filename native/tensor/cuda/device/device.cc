#include "tensor/cuda/device/device.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <unordered_map>
#include <vector>

#include "tensor/cuda/device/captured_step.h"
#include "tensor/cuda/launch/arguments.h"
#include "tensor/threads.h"

namespace ringwise::tensor::cuda {

namespace {

thread_local Device* entered = nullptr;
thread_local Activity activities[kMostDevices];
std::atomic<int> opened_last = -1;

DevicePointer address(const void* data) { return reinterpret_cast<DevicePointer>(data); }

/// Returns the words that begin the text of an error of cuLibraryLoadData. A driver loads only images of compilers that
/// are not newer than itself.
std::string what_loads(int status) {
  const int kernels = version_of_images(), known = driver().version;
  const bool is_unknown =
      status == kInvalidImage || status == kNoBinaryForGpu || status == kInvalidPtx || status == kUnsupportedPtx;
  if (!is_unknown || kernels <= known) return "cuLibraryLoadData";
  const auto text = [](int version) {
    return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
  };
  return "cuda: the kernels were compiled by CUDA " + text(kernels) + ", and the driver knows CUDA " + text(known) +
         "; install a newer driver (580 or later for CUDA 13), or build with an nvcc that is no newer";
}

}  // namespace

namespace {

/// Copies memory of the host, by several threads if there is much of it: one thread copies 10 to 20 GB/s, and the bus
/// to a device carries 25 (PCIe 4) to 55 (PCIe 5).
void copy_on_host(void* to, const void* from, size_t bytes) {
  constexpr size_t kGrain = size_t{1} << 18;
  parallel_for(bytes, kGrain, [&](size_t begin, size_t end) {
    std::memcpy(static_cast<char*>(to) + begin, static_cast<const char*>(from) + begin, end - begin);
  });
}

}  // namespace

Activity& activity_on(int device) { return activities[device]; }

class Device::DeviceMemory final : public MemorySource {
 public:
  explicit DeviceMemory(Device& device) : device_(device) {}
  void* get(size_t bytes) override {
    DevicePointer data = 0;
    const int status = driver().cuMemAlloc_v2(&data, bytes);
    if (status == kOutOfMemory) return nullptr;
    check(status, "cuMemAlloc");
    const std::lock_guard lock(mutex_);
    sizes_[reinterpret_cast<void*>(data)] = bytes;
    held_ += bytes;
    return reinterpret_cast<void*>(data);
  }
  // cuMemFree may wait for all work of the device, so memory is freed later, by reclaim() or settle().
  void put(void* segment) override {
    device_.retire(std::shared_ptr<void>(segment, [this](void* passed) { free(passed); }), device_.all_streams());
  }
  void settle() override { device_.settle(); }
  size_t held() {
    const std::lock_guard lock(mutex_);
    return held_;
  }
  size_t free_bytes() override {
    size_t free = 0, total = 0;
    driver().cuMemGetInfo_v2(&free, &total);
    return free;
  }
  std::string name() const override { return device_.name(); }

 private:
  void free(void* segment) {
    {
      // Before the driver frees it, because the driver may at once give another thread the same address.
      const std::lock_guard lock(mutex_);
      const auto found = sizes_.find(segment);
      held_ -= found->second;
      sizes_.erase(found);
    }
    driver().cuMemFree_v2(address(segment));
  }

  Device& device_;
  std::mutex mutex_;
  std::unordered_map<void*, size_t> sizes_;
  size_t held_ = 0;
};

size_t Device::reserved() const { return device_source_->held() + shareable_->held(); }
const std::shared_ptr<MemorySource> Device::source() const { return device_source_; }

class Device::PinnedMemory final : public MemorySource {
 public:
  void* get(size_t bytes) override {
    void* data = nullptr;
    return driver().cuMemHostAlloc(&data, bytes, kHostPortable) == kSuccess ? data : nullptr;
  }
  void put(void* segment) override { driver().cuMemFreeHost(segment); }
  size_t free_bytes() override { return 0; }  // not known
  std::string name() const override { return "the host (pinned)"; }
};

Device::Device(int index) : index_(index), name_(name_of_device(index)) {
  const Driver& d = driver();
  int device = 0;
  check(d.cuDeviceGet(&device, index), "cuDeviceGet");
  check(d.cuDeviceGetAttribute(&multiprocessors_, kAttributeMultiprocessors, device), "cuDeviceGetAttribute");
  check(d.cuDevicePrimaryCtxRetain(&context_, device), "cuDevicePrimaryCtxRetain");
  check(d.cuCtxSetCurrent(context_), "cuCtxSetCurrent");
  load_kernels();
  Stream main = nullptr;
  check(d.cuStreamCreate(&main, kStreamNonBlocking), "cuStreamCreate");
  streams_[0] = main;
  void* fault = nullptr;
  check(d.cuMemHostAlloc(&fault, sizeof *fault_, kHostPortable | kHostMapped), "cuMemHostAlloc");
  fault_ = static_cast<int32_t*>(fault);
  *fault_ = 0;
  device_source_ = std::make_shared<DeviceMemory>(*this);
  pinned_source_ = std::make_shared<PinnedMemory>();
  memory_ = std::make_shared<CachingAllocator>(device_source_);
  shareable_ = std::make_unique<ShareableMemory>(device, name_);
  pinned_ = std::make_shared<CachingAllocator>(pinned_source_);
}

Device& Device::get(int index) {
  // Never destroyed, because the driver may be unloaded first when the process ends.
  static std::mutex mutex;
  static auto& devices = *new std::vector<std::unique_ptr<Device>>;
  const std::lock_guard lock(mutex);
  const Driver& d = driver();
  if (!has_kernels())
    throw std::runtime_error(
        "cuda: this build has no CUDA kernels; build it with RINGWISE_CUDA=ON, and with nvcc installed.");
  if (index < 0 || index >= std::min(d.device_count, kMostDevices)) {
    throw std::runtime_error("cuda:" + std::to_string(index) + ": there is no such device; " +
                             (d.reason.empty() ? std::to_string(d.device_count) + " were found" : d.reason) + ".");
  }
  devices.resize(std::max(devices.size(), static_cast<size_t>(d.device_count)));
  if (!devices[index]) {
    entered = nullptr;
    devices[index].reset(new Device(index));
    opened_last = index;
  }
  return *devices[index];
}

void Device::enter() {
  if (entered == this) return;
  check(driver().cuCtxSetCurrent(context_), "cuCtxSetCurrent");
  entered = this;
}

Device& current_device() {
  if (!entered) throw std::logic_error("cuda: no device has been entered. This is a bug in @ringwise/tensor.");
  return *entered;
}

Device& any_device() {
  Device& device = entered ? *entered : Device::get(std::max(opened_last.load(), 0));
  device.enter();
  return device;
}

WorkStream Device::work_stream() const {
  const WorkStream& chosen = activities[index_].stream;
  return chosen.handle ? chosen : WorkStream{streams_[0].load(std::memory_order_relaxed), 0};
}

uint32_t Device::make_stream() {
  const std::lock_guard lock(stream_mutex_);
  const uint32_t number = 1 + made_ % kMostStreams;
  if (!streams_[number]) {
    Stream stream = nullptr;
    check(driver().cuStreamCreate(&stream, kStreamNonBlocking), "cuStreamCreate");
    streams_[number] = stream;
  }
  made_++;
  return number;
}

WorkStream Device::stream_of(uint32_t number) {
  const Stream handle = number <= kMostStreams ? streams_[number].load() : nullptr;
  if (!handle)
    throw std::invalid_argument("stream: there is none of this number on " + name_ +
                                ". This is a bug in @ringwise/tensor.");
  return {handle, number};
}

const std::shared_ptr<CachingAllocator>& Device::allocator() {
  reclaim_when_allowed();
  const Activity& now = activities[index_];
  return now.step ? now.step->memory() : memory_;
}

const std::shared_ptr<CachingAllocator>& Device::pinned_memory() {
  reclaim_when_allowed();
  return pinned_;
}

std::shared_ptr<void> Device::allocate_shareable(size_t bytes) {
  reclaim_when_allowed();
  return shareable_->allocate(bytes);
}

void Device::free(void* data) {
  if (CapturedStep* step = activities[index_].step; step && step->memory()->free(data)) return;
  memory_->free(data);
}

void Device::retire(std::shared_ptr<void> memory, uint32_t streams) {
  const std::lock_guard lock(retired_mutex_);
  retired_.push_back({std::move(memory), streams});
  has_retired_ = true;
}

void Device::retire(std::shared_ptr<void> memory, Event mark, uint32_t stream) {
  const std::lock_guard lock(retired_mutex_);
  batches_[stream].push_back({mark, {std::move(memory)}});
  has_retired_ = true;
}

Event Device::take_event() {
  Event event = nullptr;
  if (spare_events_.empty()) {
    check(driver().cuEventCreate(&event, kEventDisableTiming), "cuEventCreate");
  } else {
    event = spare_events_.back();
    spare_events_.pop_back();
  }
  return event;
}

Event Device::mark() {
  const std::lock_guard lock(retired_mutex_);
  const Event event = take_event();
  check(driver().cuEventRecord(event, stream()), "cuEventRecord");
  return event;
}

void Device::order(Stream before, Stream after) {
  if (before == after) return;
  const std::lock_guard lock(retired_mutex_);
  const Event event = take_event();
  int status = driver().cuEventRecord(event, before);
  if (status == kSuccess) status = driver().cuStreamWaitEvent(after, event, 0);
  // The event may be reused at once: the wait refers to the point that the event has recorded now.
  spare_events_.push_back(event);
  check(status, "cuStreamWaitEvent");
}

bool Device::is_passed(Event mark) {
  const int status = driver().cuEventQuery(mark);
  if (status == kNotReady) return false;
  check(status, "cuEventQuery");
  const std::lock_guard lock(retired_mutex_);
  spare_events_.push_back(mark);
  return true;
}

void Device::empty_caches() {
  reclaim();
  memory_->empty_cache();
  pinned_->empty_cache();
  settle();
}

void Device::settle() {
  reclaim();  // records the events
  for (const std::deque<Batch>& batches : batches_) {
    Event last = nullptr;
    {
      const std::lock_guard lock(retired_mutex_);
      if (!batches.empty()) last = batches.back().passed;
    }
    if (last) check(driver().cuEventSynchronize(last), "cuEventSynchronize");
  }
  reclaim();
}

uint32_t Device::all_streams() const {
  uint32_t streams = 0;
  for (size_t number = 0; number < streams_.size(); number++) {
    if (streams_[number].load()) streams |= 1u << number;
  }
  return streams;
}

void Device::reclaim_when_allowed() {
  if (has_retired_.load(std::memory_order_relaxed) && !activities[index_].is_capturing) reclaim();
}

/// Frees retired memory that is no longer used. Records one event on each stream that uses memory retired since the
/// last call, and asks each stream for its oldest events only. The calling thread must have entered the device. Throws
/// errors of the driver; memory then stays retired.
void Device::reclaim() {
  std::vector<Batch> over;  // these two are destroyed without the lock, because the driver may be slow
  std::vector<Retired> marked;
  const std::lock_guard lock(retired_mutex_);
  uint32_t streams = 0;
  for (const Retired& each : retired_) streams |= each.streams;
  for (; streams != 0; streams &= streams - 1) {
    const auto number = static_cast<size_t>(std::countr_zero(streams));
    Batch batch{take_event(), {}};
    check(driver().cuEventRecord(batch.passed, streams_[number]), "cuEventRecord");
    for (const Retired& each : retired_) {
      if (each.streams & 1u << number) batch.memory.push_back(each.memory);
    }
    batches_[number].push_back(std::move(batch));
  }
  marked.swap(retired_);
  bool are_waiting = false;
  for (std::deque<Batch>& batches : batches_) {
    for (; !batches.empty(); batches.pop_front()) {
      const int status = driver().cuEventQuery(batches.front().passed);
      if (status == kNotReady) break;
      check(status, "cuEventQuery");
      spare_events_.push_back(batches.front().passed);
      over.push_back(std::move(batches.front()));
    }
    are_waiting = are_waiting || !batches.empty();
  }
  has_retired_ = are_waiting;
}

/// Loads all kernels, also into the context, which the driver would otherwise do when a kernel is first launched.
/// Loading may wait for all work of the device, so it must not happen beside a collective that waits for other ranks.
void Device::load_kernels() {
  static constexpr struct {
    const char* name;
    Image image;
  } kKernels[] = {
#define RINGWISE_ROW(name, image) {#name, Image::image},
      RINGWISE_CUDA_KERNELS(RINGWISE_ROW)
#undef RINGWISE_ROW
  };
  const Driver& d = driver();
  std::array<Library, static_cast<size_t>(Image::Count)> libraries = {};
  for (size_t id = 0; id < kernels_.size(); id++) {
    const auto& [name, image] = kKernels[id];
    Library& library = libraries[static_cast<size_t>(image)];
    if (!library) {
      const int status = d.cuLibraryLoadData(&library, image_of(image), nullptr, nullptr, 0, nullptr, nullptr, 0);
      check(status, what_loads(status).c_str());
    }
    Function function = nullptr;
    check(d.cuLibraryGetKernel(&kernels_[id], library, name), name);
    check(d.cuKernelGetFunction(&function, kernels_[id]), name);
    if (d.cuFuncLoad) check(d.cuFuncLoad(function), name);
  }
}

void Device::launch(KernelId id, Grid grid, int threads, const void* arguments, size_t bytes) {
  void* parameters[] = {kLaunchPointer, const_cast<void*>(arguments), kLaunchSize, &bytes, kLaunchEnd};
  check(driver().cuLaunchKernel(kernels_[static_cast<size_t>(id)], grid.x, grid.y, grid.z,
                                static_cast<unsigned>(threads), 1, 1, 0, stream(), nullptr, parameters),
        "cuLaunchKernel");
}

/// Returns the next slot of kChunk bytes of pinned memory, after waiting for the last copy that used it.
Device::Slot& Device::next_slot() {
  Slot& slot = slots_[next_];
  next_ = (next_ + 1) % kSlots;
  if (!slot.data) {
    slot.data = static_cast<char*>(pinned_->allocate(kChunk, 0));
    check(driver().cuEventCreate(&slot.event, kEventDisableTiming), "cuEventCreate");
  } else {
    check(driver().cuEventSynchronize(slot.event), "cuEventSynchronize");
  }
  return slot;
}

void Device::upload(void* to, const void* from, size_t bytes) {
  const std::lock_guard lock(copy_mutex_);
  for (size_t done = 0; done < bytes; done += kChunk) {
    const size_t part = std::min(bytes - done, kChunk);
    Slot& slot = next_slot();
    copy_on_host(slot.data, static_cast<const char*>(from) + done, part);
    check(driver().cuMemcpyHtoDAsync_v2(address(to) + done, slot.data, part, stream()), "cuMemcpyHtoDAsync");
    check(driver().cuEventRecord(slot.event, stream()), "cuEventRecord");
  }
}

/// Frees the memory of uploads that have ended, and waits for the oldest while the next one does not fit beside them.
void Device::await_uploads(size_t next_bytes) {
  for (; !uploads_.empty(); uploads_.pop_front()) {
    const Upload& oldest = uploads_.front();
    if (upload_bytes_ + next_bytes > kMostUploads)
      check(driver().cuEventSynchronize(oldest.done), "cuEventSynchronize");
    if (!is_passed(oldest.done)) return;
    upload_bytes_ -= oldest.bytes;
  }
}

void Device::start_upload(void* to, const void* from, size_t bytes) {
  if (bytes == 0) return;
  const std::lock_guard lock(upload_mutex_);
  await_uploads(bytes);
  const auto pinned = pinned_memory();
  std::shared_ptr<void> staged(pinned->allocate(bytes, 0), [pinned](void* data) { pinned->free(data); });
  copy_on_host(staged.get(), from, bytes);
  check(driver().cuMemcpyHtoDAsync_v2(address(to), staged.get(), bytes, stream()), "cuMemcpyHtoDAsync");
  // Kept until the copy has ended: the host writes to reused memory at once, not in the order of a stream.
  uploads_.push_back({mark(), std::move(staged), bytes});
  upload_bytes_ += bytes;
}

void Device::download(void* to, const void* from, size_t bytes) {
  const std::lock_guard lock(copy_mutex_);
  Slot* waiting[kSlots];
  // Up to three slots hold running copies. The host waits for the oldest one and copies it out.
  size_t started = 0, done = 0;
  const size_t chunks = (bytes + kChunk - 1) / kChunk;
  const auto part = [&](size_t chunk) { return std::min(bytes - chunk * kChunk, kChunk); };
  while (done < chunks) {
    while (started < chunks && started - done < kSlots - 1) {
      Slot& slot = next_slot();
      check(driver().cuMemcpyDtoHAsync_v2(slot.data, address(from) + started * kChunk, part(started), stream()),
            "cuMemcpyDtoHAsync");
      check(driver().cuEventRecord(slot.event, stream()), "cuEventRecord");
      waiting[started++ % kSlots] = &slot;
    }
    Slot& slot = *waiting[done % kSlots];
    check(driver().cuEventSynchronize(slot.event), "cuEventSynchronize");
    copy_on_host(static_cast<char*>(to) + done * kChunk, slot.data, part(done));
    done++;
  }
  check_fault();
}

void Device::start_download(void* pinned, const void* from, size_t bytes) {
  if (bytes > 0) check(driver().cuMemcpyDtoHAsync_v2(pinned, address(from), bytes, stream()), "cuMemcpyDtoHAsync");
}

void Device::call_back(Stream stream, StreamCallback done, void* data) {
  check(driver().cuStreamAddCallback(stream, done, data, 0), "cuStreamAddCallback");
}

void Device::copy(void* to, const void* from, size_t bytes) {
  if (bytes > 0) check(driver().cuMemcpyDtoDAsync_v2(address(to), address(from), bytes, stream()), "cuMemcpyDtoDAsync");
}

void Device::synchronize() {
  for (const auto& each : streams_) {
    if (const Stream stream = each.load()) check(driver().cuStreamSynchronize(stream), "cuStreamSynchronize");
  }
  check_fault();
}

void Device::synchronize(uint32_t stream) {
  check(driver().cuStreamSynchronize(stream_of(stream).handle), "cuStreamSynchronize");
  check_fault();
}

void Device::check_fault() {
  const int32_t fault = *static_cast<volatile int32_t*>(fault_);
  if (fault == 0) return;
  *fault_ = 0;
  throw std::out_of_range((fault == kLabelFault ? "loss: a label" : "lookup: an index") + std::string(" on ") + name_ +
                          " was out of range in an earlier operation, whose result is wrong. Check indices before they "
                          "are moved to the device.");
}

Piece::Piece(Device& device, size_t bytes)
    : device_(device), from_(device.allocator()), own_(1u << device.work_stream().number) {
  data_ = from_->allocate(bytes, device.work_stream().number);
}

Piece::Piece(Device& device, std::shared_ptr<void> memory)
    : device_(device), data_(memory.get()), own_(1u << device.work_stream().number), owner_(std::move(memory)) {}

Piece::Piece(Device& device, void* data, std::shared_ptr<void> owner, std::optional<Stream> owners)
    : device_(device), data_(data), owner_(std::move(owner)), owners_(owners) {
  if (owners_) device_.order(*owners_, device_.stream());
}

/// Releases the memory. Ignores errors: ordering a stream fails only on a device that has failed, which every later
/// call reports.
void Piece::give_back() noexcept {
  try {
    device_.enter();
    for (uint32_t rest = streams_; rest != 0; rest &= rest - 1) {
      device_.order(device_.stream_of(static_cast<uint32_t>(std::countr_zero(rest))).handle, *owners_);
    }
  } catch (const std::exception&) {
  }
}

Piece::~Piece() {
  const uint32_t others = streams_ & ~own_;
  if (owners_) give_back();
  if (!from_) {
    if (own_ != 0) device_.retire(std::move(owner_), own_ | streams_);
    return;
  }
  if (others == 0)
    from_->free(data_);
  else
    device_.retire(std::shared_ptr<void>(data_, [from = std::move(from_)](void* data) { from->free(data); }), others);
}

void touch(const Block& block) {
  const Activity& now = activities[block.device];
  auto* piece = static_cast<Piece*>(block.keeper.get());
  if (!now.is_capturing)
    piece->used_on(now.stream.number);
  else if (piece->from() != now.step->memory().get())
    now.step->hold(std::static_pointer_cast<Piece>(block.keeper));
}

}  // namespace ringwise::tensor::cuda
