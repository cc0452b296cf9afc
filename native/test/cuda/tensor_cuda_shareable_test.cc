// Tests memory that other processes and devices can map, on the software device (or a GPU with RINGWISE_TEST_GPU=1),
// and that the software device refuses what the driver refuses.
#include "tensor/cuda/memory/shareable_memory.h"

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "test/check.h"
#include "test/cuda/on_device.h"

using namespace ringwise;
namespace gpu = ringwise::tensor::cuda;
using gpu::driver;
using gpu::ShareableMemory;

namespace {

constexpr size_t kMiB = size_t{1} << 20;

gpu::Device& device() {
  gpu::Device& found = gpu::Device::get(0);
  found.enter();
  return found;
}

gpu::AllocationProperties properties(int handle_types = gpu::kFileDescriptorHandle) {
  gpu::AllocationProperties wanted = {};
  wanted.type = gpu::kPinnedAllocation;
  wanted.handle_types = handle_types;
  wanted.location = {gpu::kLocationDevice, 0};
  return wanted;
}

size_t granularity() {
  const gpu::AllocationProperties wanted = properties();
  size_t bytes = 0;
  gpu::check(driver().cuMemGetAllocationGranularity(&bytes, &wanted, gpu::kGranularityRecommended),
             "cuMemGetAllocationGranularity");
  return bytes;
}

size_t free_bytes() {
  size_t free = 0, total = 0;
  gpu::check(driver().cuMemGetInfo_v2(&free, &total), "cuMemGetInfo");
  return free;
}

/// Returns a function that only the software device has; null on a GPU.
template <class Function>
Function* extra(const char* name) {
  return reinterpret_cast<Function*>(driver().library.symbol(name));
}
/// Returns the number of mappings, and the number of reserved address ranges.
std::pair<int, int> mapped() {
  int ranges = 0;
  const int mappings = extra<int(int*)>("softwareDriverMappings")(&ranges);
  return {mappings, ranges};
}
bool is_software() { return extra<int(int)>("softwareDriverRefuses") != nullptr; }

/// Frees the memory that waits for the end of work that used it. Tries several times, because the driver may not report
/// at once that the work has ended.
void reclaim() {
  device().synchronize();
  for (int i = 0; i < 100; i++) device().free(device().allocate(16));
}

/// Makes the software driver refuse these kinds of handles until the end of a scope, and fabric handles again after
/// that.
struct Refusing {
  explicit Refusing(int handle_types) { extra<int(int)>("softwareDriverRefuses")(handle_types); }
  ~Refusing() { extra<int(int)>("softwareDriverRefuses")(gpu::kFabricHandle); }
};

}  // namespace

TEST("pieces begin and end at multiples of what the driver recommends, and are counted until they go") {
  ShareableMemory memory(0, "cuda:0");
  const size_t step = granularity(), before = free_bytes(), asked = 3 * kMiB + 20;
  const size_t takes = (asked + step - 1) / step * step;
  std::shared_ptr<void> piece = memory.allocate(asked);
  const std::shared_ptr<void> other = memory.allocate(ShareableMemory::kLeast);
  CHECK(piece != nullptr && other != nullptr && piece != other);
  CHECK_EQ(reinterpret_cast<uintptr_t>(piece.get()) % step, size_t{0});
  CHECK_EQ(memory.held(), takes + step);
  CHECK(before - free_bytes() >= takes + step);
  piece.reset();
  CHECK_EQ(memory.held(), step);
}

TEST("small pieces are for the other allocator") {
  ShareableMemory memory(0, "cuda:0");
  for (const size_t bytes : {size_t{0}, size_t{1}, ShareableMemory::kLeast - 1})
    CHECK(memory.allocate(bytes) == nullptr);
  CHECK_EQ(memory.held(), size_t{0});
}

TEST("the device reads and writes all of a piece") {
  const size_t bytes = 5 * kMiB + 12;
  const auto piece = std::make_shared<gpu::Piece>(device(), device().allocate_shareable(bytes));
  const size_t held = device().reserved();
  std::vector<char> there(bytes), back(bytes);
  for (size_t i = 0; i < bytes; i++) there[i] = static_cast<char>(i * 7 + i / 1000);
  device().upload(piece->data(), there.data(), bytes);
  device().download(back.data(), piece->data(), bytes);
  CHECK(std::memcmp(there.data(), back.data(), bytes) == 0);
  CHECK(held >= bytes);
}

TEST("an allocation too large for the device is refused with the device's name, and leaves nothing behind") {
  ShareableMemory memory(0, "cuda:0");
  const size_t before = free_bytes();
  for (const size_t bytes : {before + 1024 * kMiB, SIZE_MAX}) {
    std::string told;
    try {
      memory.allocate(bytes);
    } catch (const gpu::OutOfMemory& error) {
      told = error.what();
    }
    CHECK(told.starts_with("memory: not enough on cuda:0; asked for "));
  }
  CHECK_EQ(memory.held(), size_t{0});
  if (is_software()) CHECK_EQ(free_bytes(), before);
  CHECK(memory.allocate(2 * kMiB) != nullptr);
}

TEST("a driver that refuses fabric handles gives memory without them, and one that refuses all gives none") {
  if (!is_software()) return;
  ShareableMemory with_fabric(0, "cuda:0"), without(0, "cuda:0"), nothing(0, "cuda:0");
  {
    const Refusing none(0);
    CHECK(with_fabric.allocate(2 * kMiB) != nullptr);
  }
  CHECK(without.allocate(2 * kMiB) != nullptr);  // the software driver refuses fabric handles by default
  {
    const Refusing all(gpu::kFabricHandle | gpu::kFileDescriptorHandle);
    CHECK(nothing.allocate(2 * kMiB) == nullptr);
  }
  CHECK(nothing.allocate(2 * kMiB) == nullptr);  // stays refused, so that the pieces of all ranks are of one kind
  CHECK(nothing.held() == 0 && with_fabric.held() == 0 && without.held() == 0);
}

TEST("a piece goes back when all streams have passed that worked with it, and not before") {
  if (!is_software()) return;
  const uint32_t side = device().make_stream();
  const size_t bytes = 4 * kMiB;
  reclaim();
  const auto before = mapped();
  std::vector<char> there(bytes, 5), back(bytes);
  auto piece = std::make_shared<gpu::Piece>(device(), device().allocate_shareable(bytes));
  device().upload(piece->data(), there.data(), bytes);
  device().synchronize();
  void* const on_host = device().pinned().allocate(bytes, 0);
  gpu::activity_on(0).stream = device().stream_of(side);
  piece->used_on(side);
  gpu::check(driver().cuMemcpyDtoHAsync_v2(on_host, reinterpret_cast<gpu::DevicePointer>(piece->data()), bytes,
                                           device().stream()),
             "cuMemcpyDtoHAsync");
  gpu::activity_on(0).stream = {};
  piece.reset();
  device().free(device().allocate(16));  // also frees shareable memory whose last use has ended
  if (test::runs_late()) CHECK(mapped().first == before.first + 1);
  device().synchronize();
  std::memcpy(back.data(), on_host, bytes);
  CHECK(back == there);
  device().pinned().free(on_host);
  reclaim();
  CHECK(mapped() == before);
}

TEST("the software device is as strict as the driver's documentation") {
  if (!is_software()) return;
  const gpu::Driver& d = driver();
  const auto before = mapped();
  const size_t step = granularity(), bytes = 2 * step;
  gpu::AllocationProperties wanted = properties();
  gpu::Allocation memory = 0;
  gpu::DevicePointer range = 0;
  // The size is no multiple of the granularity.
  CHECK(d.cuMemCreate(&memory, bytes + 4096, &wanted, 0) != gpu::kSuccess);
  wanted = properties(gpu::kFabricHandle | gpu::kFileDescriptorHandle);
  CHECK_EQ(d.cuMemCreate(&memory, bytes, &wanted, 0), gpu::kNotPermitted);
  wanted = properties();
  CHECK_EQ(d.cuMemCreate(&memory, bytes, &wanted, 0), gpu::kSuccess);
  CHECK_EQ(d.cuMemAddressReserve(&range, bytes, step, 0, 0), gpu::kSuccess);
  CHECK_EQ(range % step, 0ull);
  const gpu::MemoryAccess own = {wanted.location, gpu::kAccessReadWrite};
  CHECK(d.cuMemSetAccess(range, bytes, &own, 1) != gpu::kSuccess);         // nothing is mapped
  CHECK(d.cuMemMap(range + 4096, step, 0, memory, 0) != gpu::kSuccess);    // the address is no multiple of it
  CHECK(d.cuMemMap(range, 2 * bytes, 0, memory, 0) != gpu::kSuccess);      // more than the allocation has
  CHECK(d.cuMemMap(range + bytes, bytes, 0, memory, 0) != gpu::kSuccess);  // these addresses are not reserved
  CHECK_EQ(d.cuMemMap(range, bytes, 0, memory, 0), gpu::kSuccess);
  CHECK(d.cuMemMap(range, bytes, 0, memory, 0) != gpu::kSuccess);  // mapped already
  char byte = 3;
  CHECK(d.cuMemcpyHtoDAsync_v2(range, &byte, 1, device().stream()) != gpu::kSuccess);  // no access yet
  const gpu::MemoryAccess others = {{gpu::kLocationDevice, 1}, gpu::kAccessReadWrite};
  CHECK(d.cuMemSetAccess(range, bytes, &others, 1) != gpu::kSuccess);
  CHECK_EQ(d.cuMemSetAccess(range, bytes, &own, 1), gpu::kSuccess);
  CHECK_EQ(d.cuMemcpyHtoDAsync_v2(range + bytes - 1, &byte, 1, device().stream()), gpu::kSuccess);
  CHECK(d.cuMemcpyHtoDAsync_v2(range + bytes, &byte, 1, device().stream()) != gpu::kSuccess);
  device().synchronize();
  CHECK(d.cuMemFree_v2(range) != gpu::kSuccess);             // the memory is not from cuMemAlloc
  CHECK(d.cuMemAddressFree(range, bytes) != gpu::kSuccess);  // still mapped
  CHECK(d.cuMemUnmap(range, step) != gpu::kSuccess);         // only a part of the mapping
  const size_t free = free_bytes();
  CHECK_EQ(d.cuMemRelease(memory), gpu::kSuccess);
  CHECK(d.cuMemRelease(memory) != gpu::kSuccess);
  CHECK_EQ(free_bytes(), free);  // the mapping keeps the memory
  CHECK_EQ(d.cuMemUnmap(range, bytes), gpu::kSuccess);
  CHECK_EQ(free_bytes(), free + bytes);
  CHECK(d.cuMemUnmap(range, bytes) != gpu::kSuccess);
  CHECK(d.cuMemcpyHtoDAsync_v2(range, &byte, 1, device().stream()) != gpu::kSuccess);
  CHECK_EQ(d.cuMemAddressFree(range, bytes), gpu::kSuccess);
  CHECK(d.cuMemAddressFree(range, bytes) != gpu::kSuccess);
  CHECK(mapped() == before);
}

int main() { return test::run_on_device(); }
