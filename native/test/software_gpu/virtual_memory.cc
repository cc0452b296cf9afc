// Virtual memory management of the software device: allocations are files without names, addresses are reserved and
// mapped by the operating system. Like in the driver, sizes and addresses of memory are multiples of the granularity,
// memory is inaccessible before access is set, and only a whole mapping can be unmapped, before its addresses are
// freed. It is stricter where the driver guarantees nothing: unmapping does not wait, and work that still uses the
// memory crashes. Fabric handles are offered and then refused, as by a driver whose user may not open a channel for
// them.
#include "test/software_gpu/virtual_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <memory>
#include <mutex>

#include "base/cuda/cuda_driver.h"
#include "test/software_gpu/streams.h"

#define EXPORT extern "C" __attribute__((visibility("default"))) int

namespace {

using namespace ringwise::software_gpu;
using ringwise::cuda::AllocationProperties;
using ringwise::cuda::MemoryAccess;
using Address = unsigned long long;

enum Status { kSuccess = 0, kInvalidValue = 1, kOutOfMemory = 2, kInvalidDevice = 101, kNotPermitted = 800 };
constexpr size_t kMinimum = size_t{1} << 20, kRecommended = size_t{2} << 20;
constexpr int kFileDescriptor = 1, kFabric = 8;

/// An allocation, which lives as long as its handle or a mapping of it.
struct Allocated {
  const int file;
  const size_t bytes;
  const int device, handle_types;
  Allocated(int at_file, size_t size, int of_device, int types)
      : file(at_file), bytes(size), device(of_device), handle_types(types) {}
  Allocated(const Allocated&) = delete;
  ~Allocated() {
    close(file);
    return_bytes(device, bytes);
  }
};
struct Mapping {
  size_t bytes;
  std::shared_ptr<Allocated> memory;
  bool has_access;
};

std::mutex mutex;  // guards all variables below
std::map<unsigned long long, std::shared_ptr<Allocated>> handles;
std::map<Address, size_t> reservations;
std::map<Address, Mapping> mappings;
unsigned long long last_handle = 0;
int refused_types = kFabric;

void* pointer(Address address) { return reinterpret_cast<void*>(address); }

int checked(const AllocationProperties& wanted) {
  if (wanted.type != 1 || wanted.location.type != 1 || (wanted.handle_types & ~(kFileDescriptor | kFabric)) != 0)
    return kInvalidValue;
  if (!is_device(wanted.location.id)) return kInvalidDevice;
  return kSuccess;
}

/// Returns the range of `ranges` that contains these bytes, or the end of `ranges`.
template <class Ranges, class Size>
auto range_of(Ranges& ranges, Address address, size_t bytes, const Size& size_of) {
  auto found = ranges.upper_bound(address);
  if (found == ranges.begin()) return ranges.end();
  --found;
  const size_t offset = address - found->first, whole = size_of(found->second);
  return offset <= whole && bytes <= whole - offset ? found : ranges.end();
}
auto mapping_of(Address address, size_t bytes) {
  return range_of(mappings, address, bytes, [](const Mapping& mapping) { return mapping.bytes; });
}

bool overlaps_a_mapping(Address address, size_t bytes) {
  const auto after = mappings.lower_bound(address + bytes);
  if (after == mappings.begin()) return false;
  const auto last = std::prev(after);
  return last->first + last->second.bytes > address;
}

}  // namespace

bool ringwise::software_gpu::is_mapped(unsigned long long address, size_t bytes) {
  const std::lock_guard lock(mutex);
  const auto found = mapping_of(address, bytes);
  return found != mappings.end() && found->second.has_access;
}

bool ringwise::software_gpu::is_shareable(const void* data, size_t bytes) {
  const std::lock_guard lock(mutex);
  const auto found = mappings.find(reinterpret_cast<Address>(data));
  if (found == mappings.end() || !found->second.has_access) return false;
  const auto& [address, mapping] = *found;
  return bytes <= mapping.bytes && address % kRecommended == 0 && mapping.bytes % kRecommended == 0 &&
         (mapping.memory->handle_types & kFileDescriptor) != 0;
}

EXPORT cuMemGetAllocationGranularity(size_t* bytes, const AllocationProperties* wanted, int option) {
  if (const int status = checked(*wanted)) return status;
  if (option != 0 && option != 1) return kInvalidValue;
  return *bytes = option == 0 ? kMinimum : kRecommended, kSuccess;
}

EXPORT cuMemCreate(unsigned long long* handle, size_t bytes, const AllocationProperties* wanted,
                   unsigned long long flags) {
  if (const int status = checked(*wanted)) return status;
  if (bytes == 0 || bytes % kMinimum != 0 || flags != 0) return kInvalidValue;
  const std::lock_guard lock(mutex);
  if (wanted->handle_types & refused_types) return kNotPermitted;
  const int device = wanted->location.id;
  if (!take_bytes(device, bytes)) return kOutOfMemory;
  const int file = memfd_create("software-gpu", MFD_CLOEXEC);
  const auto made = std::make_shared<Allocated>(file, bytes, device, wanted->handle_types);
  if (file < 0 || ftruncate(file, static_cast<off_t>(bytes)) != 0) return kOutOfMemory;
  void* const all = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (all == MAP_FAILED) return kOutOfMemory;
  std::memset(all, 0xff, bytes);
  munmap(all, bytes);
  handles[++last_handle] = made;
  return *handle = last_handle, kSuccess;
}

EXPORT cuMemRelease(unsigned long long handle) {
  const std::lock_guard lock(mutex);
  return handles.erase(handle) == 1 ? kSuccess : kInvalidValue;
}

EXPORT cuMemAddressReserve(Address* address, size_t bytes, size_t alignment, Address, unsigned long long flags) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  if (bytes == 0 || bytes % page != 0 || (alignment & (alignment - 1)) != 0 || flags != 0) return kInvalidValue;
  if (alignment < page) alignment = page;
  void* const found = mmap(nullptr, bytes + alignment, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (found == MAP_FAILED) return kOutOfMemory;
  const auto begin = reinterpret_cast<Address>(found), aligned = (begin + alignment - 1) / alignment * alignment;
  if (aligned > begin) munmap(found, aligned - begin);
  if (const size_t rest = begin + alignment - aligned) munmap(pointer(aligned + bytes), rest);
  const std::lock_guard lock(mutex);
  reservations[aligned] = bytes;
  return *address = aligned, kSuccess;
}

EXPORT cuMemAddressFree(Address address, size_t bytes) {
  const std::lock_guard lock(mutex);
  const auto found = reservations.find(address);
  if (found == reservations.end() || found->second != bytes || overlaps_a_mapping(address, bytes)) return kInvalidValue;
  munmap(pointer(address), bytes);
  reservations.erase(found);
  return kSuccess;
}

EXPORT cuMemMap(Address address, size_t bytes, size_t offset, unsigned long long handle, unsigned long long flags) {
  const std::lock_guard lock(mutex);
  const auto memory = handles.find(handle);
  if (memory == handles.end() || flags != 0 || offset != 0) return kInvalidValue;
  if (bytes == 0 || bytes % kMinimum != 0 || address % kMinimum != 0 || bytes > memory->second->bytes)
    return kInvalidValue;
  const auto reserved = range_of(reservations, address, bytes, [](size_t size) { return size; });
  if (reserved == reservations.end() || overlaps_a_mapping(address, bytes)) return kInvalidValue;
  mappings[address] = {bytes, memory->second, false};
  return kSuccess;
}

EXPORT cuMemSetAccess(Address address, size_t bytes, const MemoryAccess* wanted, size_t count) {
  const std::lock_guard lock(mutex);
  const auto found = mappings.find(address);
  if (found == mappings.end() || found->second.bytes != bytes || count != 1) return kInvalidValue;
  if (wanted->location.type != 1 || wanted->flags != 3) return kInvalidValue;
  // Devices cannot access each other's memory.
  if (wanted->location.id != found->second.memory->device) return kInvalidDevice;
  void* const mapped =
      mmap(pointer(address), bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, found->second.memory->file, 0);
  if (mapped == MAP_FAILED) return kOutOfMemory;
  found->second.has_access = true;
  return kSuccess;
}

EXPORT cuMemUnmap(Address address, size_t bytes) {
  {
    const std::lock_guard lock(mutex);
    const auto found = mappings.find(address);
    if (found == mappings.end() || found->second.bytes != bytes) return kInvalidValue;
    mmap(pointer(address), bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    mappings.erase(found);
  }
  given_back(pointer(address), bytes);
  return kSuccess;
}

/// For tests: makes the driver refuse allocations with any of these handle types.
EXPORT softwareDriverRefuses(int handle_types) {
  const std::lock_guard lock(mutex);
  return refused_types = handle_types, kSuccess;
}
/// For tests: returns the number of mappings, and sets `ranges` to the number of reserved address ranges.
EXPORT softwareDriverMappings(int* ranges) {
  const std::lock_guard lock(mutex);
  *ranges = static_cast<int>(reservations.size());
  return static_cast<int>(mappings.size());
}
