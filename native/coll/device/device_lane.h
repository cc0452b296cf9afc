// The host backend's way to the memory of a CUDA device: two streams, one that brings pieces of device memory down to
// slots of host memory and one that takes them up again, so that both directions of the bus work at once. What runs
// between, on the slots, is up to the caller. One thread calls all of it; nothing here knows Node.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/cuda/cuda_driver.h"
#include "base/time/clock.h"

namespace ringwise::coll {

class DeviceLane {
 public:
  /// `data` holds `slots` slots of the same length, and has to be there as long as this. Throws where there is no such
  /// device.
  DeviceLane(int device, void* data, size_t bytes, size_t slots);
  /// Calls leave() if that has not been done. Call leave() first if you need to know whether the memory can be freed.
  ~DeviceLane() { leave(1000 * kMillisecond); }
  DeviceLane(const DeviceLane&) = delete;
  DeviceLane& operator=(const DeviceLane&) = delete;

  /// Returns whether the slots are registered with the driver, so that it copies them without an intermediate buffer.
  bool is_registered() const { return is_registered_; }

  /// Waits until the device no longer uses the memory, which can be freed then. Returns false if that takes longer than
  /// `within_ns` (the streams may wait for stuck work) or the device is lost; the memory must stay then. Afterwards
  /// only leave() may be called again.
  bool leave(int64_t within_ns);

  /// Orders all later copies after the work that `stream` has been given so far.
  void follow(cuda::Stream stream);
  /// Orders all later work of `stream` after the copies to the device so far.
  void lead(cuda::Stream stream);

  /// Orders later copies into the slot after the earlier copies from it.
  void begin(size_t slot);
  void down(size_t slot, size_t offset, cuda::DevicePointer from, size_t bytes);
  /// `landed(…, data)` is called once all that was sent down is there or the device has failed, which await_landing
  /// tells, by a thread of the driver's; not where this throws.
  void land(size_t slot, cuda::StreamCallback landed, void* data);
  /// Blocks until the copies that were given before `land` have reached the slot.
  void await_landing(size_t slot);

  void up(size_t slot, size_t offset, cuda::DevicePointer to, size_t bytes);
  /// Ends the use of the slot; call it after the last up() from it.
  void end(size_t slot);

 private:
  struct Slot {
    cuda::Event down = nullptr, up = nullptr;
  };

  DeviceLane() = default;  // what the other one has got so far is given back when it throws
  char* address(size_t slot, size_t offset, size_t bytes) const;
  void wait_for_device(int64_t within_ns);
  void let_go();

  cuda::Context context_ = nullptr;  // null before there is anything, and once it has been left
  char* data_ = nullptr;
  size_t slot_bytes_ = 0;
  bool is_registered_ = false;
  cuda::Stream down_ = nullptr, up_ = nullptr;
  cuda::Event order_ = nullptr;
  std::vector<Slot> slots_;
};

}  // namespace ringwise::coll
