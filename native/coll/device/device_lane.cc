#include "coll/device/device_lane.h"

#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>

#include "base/cuda/cuda_context.h"
#include "base/time/clock.h"

namespace ringwise::coll {

using namespace cuda;

DeviceLane::DeviceLane(int device, void* data, size_t bytes, size_t slots) : DeviceLane() {
  const Driver& d = driver();
  if (device < 0 || device >= d.device_count) {
    throw std::runtime_error("there is no such device; " +
                             (d.reason.empty() ? std::to_string(d.device_count) + " were found" : d.reason));
  }
  int handle = 0;
  check(d.cuDeviceGet(&handle, device), "cuDeviceGet");
  check(d.cuDevicePrimaryCtxRetain(&context_, handle), "cuDevicePrimaryCtxRetain");
  const Entered entered(context_);
  data_ = static_cast<char*>(data);
  slot_bytes_ = bytes / slots;
  // If registration fails, the driver copies through its own memory, which only takes longer.
  is_registered_ = d.cuMemHostRegister_v2(data_, bytes, kHostPortable) == kSuccess;
  check(d.cuStreamCreate(&down_, kStreamNonBlocking), "cuStreamCreate");
  check(d.cuStreamCreate(&up_, kStreamNonBlocking), "cuStreamCreate");
  check(d.cuEventCreate(&order_, kEventDisableTiming), "cuEventCreate");
  slots_.resize(slots);
  for (Slot& slot : slots_) {
    check(d.cuEventCreate(&slot.down, kEventDisableTiming), "cuEventCreate");
    check(d.cuEventCreate(&slot.up, kEventDisableTiming), "cuEventCreate");
  }
}

bool DeviceLane::leave(int64_t within_ns) {
  if (context_ == nullptr) return true;
  try {
    const Entered entered(context_);
    wait_for_device(within_ns);
    let_go();
  } catch (const std::exception&) {
    return false;
  }
  context_ = nullptr;
  return true;
}

/// Waits until the device has finished the copies. Polls instead of calling cuStreamSynchronize, which may never
/// return.
void DeviceLane::wait_for_device(int64_t within_ns) {
  const Driver& d = driver();
  const int64_t deadline = now_ns() + within_ns;
  for (const Stream stream : {down_, up_}) {
    if (stream == nullptr || order_ == nullptr) continue;  // creation failed earlier, so no copy is running
    check(d.cuEventRecord(order_, stream), "cuEventRecord");
    int status;
    while ((status = d.cuEventQuery(order_)) == kNotReady && now_ns() < deadline) {
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    check(status, "cuEventQuery");
  }
}

void DeviceLane::let_go() {
  const Driver& d = driver();
  if (is_registered_) d.cuMemHostUnregister(data_);
  std::vector<Event> events = {order_};
  for (const Slot& slot : slots_) events.insert(events.end(), {slot.down, slot.up});
  for (const Event event : events) {
    if (event != nullptr) d.cuEventDestroy_v2(event);
  }
  for (const Stream stream : {down_, up_}) {
    if (stream != nullptr) d.cuStreamDestroy_v2(stream);
  }
}

char* DeviceLane::address(size_t slot, size_t offset, size_t bytes) const {
  if (slot >= slots_.size() || offset > slot_bytes_ || bytes > slot_bytes_ - offset)
    throw std::out_of_range("a copy leaves its slot");
  return data_ + slot * slot_bytes_ + offset;
}

void DeviceLane::follow(Stream stream) {
  const Entered entered(context_);
  check(driver().cuEventRecord(order_, stream), "cuEventRecord");
  check(driver().cuStreamWaitEvent(down_, order_, 0), "cuStreamWaitEvent");
  check(driver().cuStreamWaitEvent(up_, order_, 0), "cuStreamWaitEvent");
}

void DeviceLane::lead(Stream stream) {
  const Entered entered(context_);
  check(driver().cuEventRecord(order_, up_), "cuEventRecord");
  check(driver().cuStreamWaitEvent(stream, order_, 0), "cuStreamWaitEvent");
}

void DeviceLane::begin(size_t slot) {
  const Entered entered(context_);
  check(driver().cuStreamWaitEvent(down_, slots_.at(slot).up, 0), "cuStreamWaitEvent");
}

void DeviceLane::down(size_t slot, size_t offset, DevicePointer from, size_t bytes) {
  const Entered entered(context_);
  check(driver().cuMemcpyDtoHAsync_v2(address(slot, offset, bytes), from, bytes, down_), "cuMemcpyDtoHAsync");
}

void DeviceLane::land(size_t slot, StreamCallback landed, void* data) {
  const Entered entered(context_);
  check(driver().cuEventRecord(slots_.at(slot).down, down_), "cuEventRecord");
  // cuLaunchHostFunc does not call its function when the device fails, so this must be a stream callback.
  check(driver().cuStreamAddCallback(down_, landed, data, 0), "cuStreamAddCallback");
}

void DeviceLane::await_landing(size_t slot) {
  const Entered entered(context_);
  check(driver().cuEventSynchronize(slots_.at(slot).down), "cuEventSynchronize");
}

void DeviceLane::up(size_t slot, size_t offset, DevicePointer to, size_t bytes) {
  const Entered entered(context_);
  check(driver().cuMemcpyHtoDAsync_v2(to, address(slot, offset, bytes), bytes, up_), "cuMemcpyHtoDAsync");
}

void DeviceLane::end(size_t slot) {
  const Entered entered(context_);
  check(driver().cuEventRecord(slots_.at(slot).up, up_), "cuEventRecord");
}

}  // namespace ringwise::coll
