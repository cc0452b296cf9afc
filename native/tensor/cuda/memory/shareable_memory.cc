#include "tensor/cuda/memory/shareable_memory.h"

#include <optional>

#include "tensor/cuda/memory/caching_allocator.h"

namespace ringwise::tensor::cuda {

namespace {

/// Returns whether the device has an attribute. Older drivers return an error for attributes that they do not know.
bool has(int attribute, int device) {
  int value = 0;
  return driver().cuDeviceGetAttribute(&value, attribute, device) == kSuccess && value != 0;
}

/// Returns whether the driver refuses this kind of memory: the process may lack the rights to share it between hosts,
/// or run in a virtual machine.
bool is_refusal(int status) { return status == kNotPermitted || status == kNotSupported; }

}  // namespace

/// One allocation. The destructor undoes the steps that have succeeded.
struct ShareableMemory::Piece {
  std::atomic<size_t>& held;
  size_t bytes = 0, alignment = 0;
  std::optional<Allocation> memory;
  DevicePointer range = 0;
  bool is_mapped = false;

  explicit Piece(std::atomic<size_t>& counter) : held(counter) {}
  Piece(const Piece&) = delete;
  Piece& operator=(const Piece&) = delete;
  ~Piece() {
    if (is_mapped) driver().cuMemUnmap(range, bytes);
    if (range) driver().cuMemAddressFree(range, bytes);
    if (!memory) return;
    driver().cuMemRelease(*memory);
    held -= bytes;
  }
};

ShareableMemory::ShareableMemory(int device, std::string name)
    : name_(std::move(name)),
      is_offered_(has(kAttributeVirtualMemory, device) && has(kAttributeFileDescriptors, device)) {
  properties_.type = kPinnedAllocation;
  properties_.location = {kLocationDevice, device};
  properties_.handle_types = kFileDescriptorHandle;
  if (has(kAttributeFabricHandles, device)) properties_.handle_types |= kFabricHandle;
  properties_.flags.is_for_rdma = has(kAttributeRdmaWithVirtualMemory, device);
}

std::shared_ptr<void> ShareableMemory::allocate(size_t bytes) {
  const std::lock_guard lock(mutex_);
  if (!is_offered_ || bytes < kLeast) return nullptr;
  const auto piece = std::make_shared<Piece>(held_);
  int status = create(*piece, bytes);
  if (is_refusal(status) && (properties_.handle_types & kFabricHandle)) {
    properties_.handle_types &= ~kFabricHandle;
    status = create(*piece, bytes);
  }
  if (is_refusal(status)) {
    is_offered_ = false;
    return nullptr;
  }
  const Driver& d = driver();
  checked(status, "cuMemCreate", bytes);
  checked(d.cuMemAddressReserve(&piece->range, piece->bytes, piece->alignment, 0, 0), "cuMemAddressReserve", bytes);
  checked(d.cuMemMap(piece->range, piece->bytes, 0, *piece->memory, 0), "cuMemMap", bytes);
  piece->is_mapped = true;
  // Other processes and devices map it themselves.
  const MemoryAccess own = {properties_.location, kAccessReadWrite};
  checked(d.cuMemSetAccess(piece->range, piece->bytes, &own, 1), "cuMemSetAccess", bytes);
  return {piece, reinterpret_cast<void*>(piece->range)};
}

/// Creates the memory of a piece, which has no address yet. Returns the driver's status.
int ShareableMemory::create(Piece& piece, size_t bytes) {
  const int status = driver().cuMemGetAllocationGranularity(&piece.alignment, &properties_, kGranularityRecommended);
  if (status != kSuccess) return status;
  if (bytes > SIZE_MAX / 2) return kOutOfMemory;
  piece.bytes = (bytes + piece.alignment - 1) / piece.alignment * piece.alignment;
  Allocation memory = 0;
  const int created = driver().cuMemCreate(&memory, piece.bytes, &properties_, 0);
  if (created != kSuccess) return created;
  piece.memory = memory;
  held_ += piece.bytes;
  return kSuccess;
}

void ShareableMemory::checked(int status, const char* what, size_t bytes) const {
  if (status != kOutOfMemory) return check(status, what);
  size_t free = 0, total = 0;
  driver().cuMemGetInfo_v2(&free, &total);
  throw OutOfMemory("memory: not enough on " + name_ + "; asked for " + megabytes(bytes) +
                    " that other devices can reach, " + megabytes(free) +
                    " free. Use smaller batches, or dispose of tensors that are no longer needed.");
}

}  // namespace ringwise::tensor::cuda
