#include "tensor/cuda/memory/pinned.h"

#include <utility>

namespace ringwise::tensor::cuda {

Pinned::Pinned(Device& device, size_t bytes)
    : from_(device.pinned_memory()), data_(static_cast<char*>(from_->allocate(bytes, 0))), bytes_(bytes) {}

Pinned::~Pinned() {
  // The deleter frees the memory when the last device has released its reference.
  const std::shared_ptr<void> last(data_, [from = std::move(from_)](void* data) { from->free(data); });
  for (const Copy& copy : copies_) copy.device->retire(last, copy.end, copy.stream);
}

void Pinned::note(Device& device, int status, const char* what) {
  check(status, what);
  copies_.push_back({&device, device.mark(), device.work_stream().number});
  if (copies_.size() <= 8) return;
  is_idle();  // drops copies that have ended
  device.enter();
}

void Pinned::start_upload(Device& device, void* to, size_t offset, size_t bytes) {
  if (bytes == 0) return;
  note(device,
       driver().cuMemcpyHtoDAsync_v2(reinterpret_cast<DevicePointer>(to), data_ + offset, bytes, device.stream()),
       "cuMemcpyHtoDAsync");
}

void Pinned::start_download(Device& device, size_t offset, const void* from, size_t bytes) {
  if (bytes == 0) return;
  note(device,
       driver().cuMemcpyDtoHAsync_v2(data_ + offset, reinterpret_cast<DevicePointer>(from), bytes, device.stream()),
       "cuMemcpyDtoHAsync");
}

bool Pinned::is_idle() {
  std::erase_if(copies_, [](const Copy& copy) {
    copy.device->enter();
    return copy.device->is_passed(copy.end);
  });
  return copies_.empty();
}

}  // namespace ringwise::tensor::cuda
