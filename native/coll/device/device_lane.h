// Copies between the memory of a CUDA device and slots of host memory, for staged collectives of the host backend. One
// stream copies down to the slots and another copies up, so that both directions of the bus work at once. The caller
// runs the collectives on the slots. Used by one thread; nothing here depends on Node.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/cuda/cuda_driver.h"
#include "base/time/clock.h"

namespace ringwise::coll {

class DeviceLane {
 public:
  /// Uses `data`, `bytes` bytes of host memory, as `slots` slots of equal length; it must outlive this object unless
  /// leave() returned true. Throws if there is no such device.
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
  /// down() copies from the device to the slot, up() from the slot to the device. `offset` is in bytes from the slot's
  /// beginning.
  void down(size_t slot, size_t offset, cuda::DevicePointer from, size_t bytes);
  /// Calls `landed(…, data)` on a thread of the driver once all copies down() so far have reached the slot or the
  /// device has failed; await_landing() then throws if it has failed. Does not call it if land() throws.
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

  // the public constructor delegates to it, so that the destructor frees what it has acquired if it throws
  DeviceLane() = default;
  char* address(size_t slot, size_t offset, size_t bytes) const;
  void wait_for_device(int64_t within_ns);
  void let_go();

  cuda::Context context_ = nullptr;  // null before the device is opened and after leave()
  char* data_ = nullptr;
  size_t slot_bytes_ = 0;
  bool is_registered_ = false;
  cuda::Stream down_ = nullptr, up_ = nullptr;
  cuda::Event order_ = nullptr;
  std::vector<Slot> slots_;
};

}  // namespace ringwise::coll
