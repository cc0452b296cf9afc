#include "tensor/cuda/device.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "tensor/cuda/arguments.h"

namespace ringwise::tensor::cuda {

namespace {

thread_local Device* entered = nullptr;

DevicePointer address(const void* data) { return reinterpret_cast<DevicePointer>(data); }

}  // namespace

class Device::DeviceMemory final : public MemorySource {
 public:
  explicit DeviceMemory(std::string name) : name_(std::move(name)) {}
  void* get(size_t bytes) override {
    DevicePointer data = 0;
    const int status = driver().cuMemAlloc_v2(&data, bytes);
    if (status == kOutOfMemory) return nullptr;
    check(status, "cuMemAlloc");
    return reinterpret_cast<void*>(data);
  }
  // Waits for the device, so nothing that runs loses its memory.
  void put(void* segment) override { driver().cuMemFree_v2(address(segment)); }
  size_t free_bytes() override {
    size_t free = 0, total = 0;
    driver().cuMemGetInfo_v2(&free, &total);
    return free;
  }
  std::string name() const override { return name_; }

 private:
  std::string name_;
};

class Device::PinnedMemory final : public MemorySource {
 public:
  void* get(size_t bytes) override {
    void* data = nullptr;
    return driver().cuMemHostAlloc(&data, bytes, kHostPortable) == kSuccess ? data : nullptr;
  }
  void put(void* segment) override { driver().cuMemFreeHost(segment); }
  size_t free_bytes() override { return 0; }  // nobody knows
  std::string name() const override { return "the host (pinned)"; }
};

Device::Device(int index) : index_(index), name_(name_of_device(index)) {
  const Driver& d = driver();
  int device = 0;
  check(d.cuDeviceGet(&device, index), "cuDeviceGet");
  check(d.cuDeviceGetAttribute(&multiprocessors_, kAttributeMultiprocessors, device), "cuDeviceGetAttribute");
  check(d.cuDevicePrimaryCtxRetain(&context_, device), "cuDevicePrimaryCtxRetain");
  check(d.cuCtxSetCurrent(context_), "cuCtxSetCurrent");
  check(d.cuStreamCreate(&stream_, kStreamNonBlocking), "cuStreamCreate");
  void* fault = nullptr;
  check(d.cuMemHostAlloc(&fault, sizeof *fault_, kHostPortable | kHostMapped), "cuMemHostAlloc");
  fault_ = static_cast<int32_t*>(fault);
  *fault_ = 0;
  device_source_ = std::make_unique<DeviceMemory>(name_);
  pinned_source_ = std::make_unique<PinnedMemory>();
  memory_ = std::make_unique<CachingAllocator>(*device_source_);
  pinned_ = std::make_unique<CachingAllocator>(*pinned_source_);
}

Device& Device::get(int index) {
  // Never destroyed: at the end of the process the driver may be gone already.
  static std::mutex mutex;
  static auto& devices = *new std::vector<std::unique_ptr<Device>>;
  const std::lock_guard lock(mutex);
  const Driver& d = driver();
  if (!has_kernels()) throw std::runtime_error("cuda: this build has no CUDA kernels; build it where nvcc is installed.");
  if (index < 0 || index >= d.device_count) {
    throw std::runtime_error("cuda:" + std::to_string(index) + ": there is no such device; " +
                             (d.reason.empty() ? std::to_string(d.device_count) + " were found" : d.reason) + ".");
  }
  devices.resize(std::max(devices.size(), static_cast<size_t>(d.device_count)));
  if (!devices[index]) {
    entered = nullptr;
    devices[index].reset(new Device(index));
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

Kernel Device::kernel_of(KernelId id) {
  static constexpr struct {
    const char* name;
    Image image;
  } kKernels[] = {
#define RINGWISE_ROW(name, image) {#name, Image::image},
      RINGWISE_CUDA_KERNELS(RINGWISE_ROW)
#undef RINGWISE_ROW
  };
  std::atomic<Kernel>& kernel = kernels_[static_cast<int>(id)];
  if (Kernel found = kernel.load(std::memory_order_acquire)) return found;
  const std::lock_guard lock(load_mutex_);
  const auto& [name, image] = kKernels[static_cast<int>(id)];
  Library& library = libraries_[static_cast<int>(image)];
  if (!library) {
    check(driver().cuLibraryLoadData(&library, image_of(image), nullptr, nullptr, 0, nullptr, nullptr, 0),
          "cuLibraryLoadData");
  }
  Kernel found = nullptr;
  check(driver().cuLibraryGetKernel(&found, library, name), name);
  kernel.store(found, std::memory_order_release);
  return found;
}

void Device::launch(KernelId id, Grid grid, int threads, const void* arguments, size_t bytes) {
  void* parameters[] = {kLaunchPointer, const_cast<void*>(arguments), kLaunchSize, &bytes, kLaunchEnd};
  check(driver().cuLaunchKernel(kernel_of(id), grid.x, grid.y, grid.z, static_cast<unsigned>(threads), 1, 1, 0, stream_,
                                nullptr, parameters),
        "cuLaunchKernel");
}

/// Pinned memory of kChunk bytes, once the copy that used it last has ended.
Device::Slot& Device::next_slot() {
  Slot& slot = slots_[next_];
  next_ = (next_ + 1) % kSlots;
  if (!slot.data) {
    slot.data = static_cast<char*>(pinned_->allocate(kChunk, kStreamNumber));
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
    std::memcpy(slot.data, static_cast<const char*>(from) + done, part);
    check(driver().cuMemcpyHtoDAsync_v2(address(to) + done, slot.data, part, stream_), "cuMemcpyHtoDAsync");
    check(driver().cuEventRecord(slot.event, stream_), "cuEventRecord");
  }
}

void Device::download(void* to, const void* from, size_t bytes) {
  const std::lock_guard lock(copy_mutex_);
  Slot* waiting[kSlots];
  // All slots but one are under way while the oldest is copied out.
  size_t started = 0, done = 0;
  const size_t chunks = (bytes + kChunk - 1) / kChunk;
  const auto part = [&](size_t chunk) { return std::min(bytes - chunk * kChunk, kChunk); };
  while (done < chunks) {
    while (started < chunks && started - done < kSlots - 1) {
      Slot& slot = next_slot();
      check(driver().cuMemcpyDtoHAsync_v2(slot.data, address(from) + started * kChunk, part(started), stream_),
            "cuMemcpyDtoHAsync");
      check(driver().cuEventRecord(slot.event, stream_), "cuEventRecord");
      waiting[started++ % kSlots] = &slot;
    }
    Slot& slot = *waiting[done % kSlots];
    check(driver().cuEventSynchronize(slot.event), "cuEventSynchronize");
    std::memcpy(static_cast<char*>(to) + done * kChunk, slot.data, part(done));
    done++;
  }
  check_fault();
}

void Device::start_download(void* pinned, const void* from, size_t bytes, HostFunction done, void* data) {
  if (bytes > 0) check(driver().cuMemcpyDtoHAsync_v2(pinned, address(from), bytes, stream_), "cuMemcpyDtoHAsync");
  check(driver().cuLaunchHostFunc(stream_, done, data), "cuLaunchHostFunc");
}

void Device::copy(void* to, const void* from, size_t bytes) {
  if (bytes > 0) check(driver().cuMemcpyDtoDAsync_v2(address(to), address(from), bytes, stream_), "cuMemcpyDtoDAsync");
}

void Device::synchronize() {
  check(driver().cuStreamSynchronize(stream_), "cuStreamSynchronize");
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

}  // namespace ringwise::tensor::cuda
