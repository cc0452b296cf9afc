// Tests pinned host memory and its copies, on the software device (or a GPU with RINGWISE_TEST_GPU=1).
#include "tensor/cuda/memory/pinned.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "tensor/cuda/device/info.h"
#include "tensor/threads.h"
#include "test/check.h"
#include "test/cuda/on_device.h"

using namespace ringwise;
namespace gpu = ringwise::tensor::cuda;
using gpu::Pinned;

namespace {

constexpr size_t kBytes = 300'000;

gpu::Device& device() {
  gpu::Device& found = gpu::Device::get(0);
  found.enter();
  return found;
}

char byte_at(size_t i) { return static_cast<char>(i * 7 + i / 1000); }

bool has_pattern(const char* data, size_t bytes) {
  for (size_t i = 0; i < bytes; i++) {
    if (data[i] != byte_at(i)) return false;
  }
  return true;
}

/// Returns device memory that holds the pattern of byte_at().
void* pattern_on_device() {
  void* const data = device().allocate(kBytes);
  Pinned from(device(), kBytes);
  for (size_t i = 0; i < kBytes; i++) from.data()[i] = byte_at(i);
  from.start_upload(device(), data, 0, kBytes);
  device().synchronize();
  return data;
}

}  // namespace

TEST("copies go both ways, in their order, without waits") {
  void* const there = device().allocate(kBytes);
  Pinned both(device(), 2 * kBytes);
  CHECK(both.is_idle());
  for (size_t i = 0; i < kBytes; i++) both.data()[i] = byte_at(i);
  std::memset(both.data() + kBytes, 0, kBytes);
  both.start_upload(device(), there, 0, kBytes);
  both.start_download(device(), kBytes, there, kBytes);
  if (test::runs_late()) CHECK(!both.is_idle());
  device().synchronize();
  CHECK(both.is_idle());
  CHECK(has_pattern(both.data() + kBytes, kBytes));
  device().free(there);
}

TEST("any number of pieces may be under way, also empty ones") {
  void* const there = pattern_on_device();
  Pinned pieces(device(), kBytes);
  std::memset(pieces.data(), 0, kBytes);
  for (size_t from = 0; from < kBytes; from += 1000) {
    pieces.start_download(device(), from, static_cast<char*>(there) + from, 1000);
    pieces.start_download(device(), from, there, 0);
  }
  device().synchronize();
  CHECK(pieces.is_idle());
  CHECK(has_pattern(pieces.data(), kBytes));
  device().free(there);
}

TEST("one piece of memory serves two devices in turn") {
  if (gpu::info().devices.size() < 2) return;
  gpu::Device* const devices[] = {&gpu::Device::get(0), &gpu::Device::get(1)};
  void* there[2];
  for (int i = 0; i < 2; i++) {
    devices[i]->enter();
    there[i] = devices[i]->allocate(kBytes);
  }
  Pinned both(*devices[0], kBytes);
  for (int i = 0; i < 40; i++) {
    gpu::Device& to = *devices[i % 2];
    to.enter();
    both.start_upload(to, there[i % 2], 0, kBytes);
  }
  for (int i = 0; i < 2; i++) {
    devices[i]->enter();
    devices[i]->synchronize();
    devices[i]->free(there[i]);
  }
  CHECK(both.is_idle());
  device();  // enters the device of the other tests
}

TEST("memory that is released during a copy has no new owner before the copy has ended") {
  void* const there = pattern_on_device();
  auto first = std::make_unique<Pinned>(device(), kBytes);
  const char* const where = first->data();
  first->start_download(device(), 0, there, kBytes);
  first.reset();
  Pinned second(device(), kBytes);
  if (test::runs_late()) CHECK(second.data() != where);
  std::memset(second.data(), 1, kBytes);
  device().synchronize();
  CHECK(second.data()[kBytes / 2] == 1);
  const Pinned third(device(), kBytes);
  if (second.data() != where) {
    CHECK(third.data() == where);
    CHECK(has_pattern(third.data(), kBytes));
  }
  device().free(there);
}

TEST("uploads of a host that runs ahead use no more than a fixed amount of pinned memory, and arrive") {
  constexpr size_t kBatch = size_t{38} << 20;
  std::vector<char> batch(kBatch);
  void* const there = device().allocate(kBatch);
  const size_t before = device().pinned().use().live;
  auto blocked = std::make_unique<test::Blocked>(device().stream());
  std::thread unblocks([&] {
    while (device().pinned().use().live - before < 6 * kBatch) std::this_thread::yield();
    blocked.reset();
  });
  for (int i = 0; i < 10; i++) {
    batch[0] = batch[kBatch - 1] = static_cast<char>(i);
    device().start_upload(there, batch.data(), kBatch);
  }
  unblocks.join();
  CHECK(device().pinned().use().peak <= before + gpu::Device::kMostUploads);
  device().download(batch.data(), there, kBatch);
  CHECK_EQ(batch[0] + batch[kBatch - 1], 18);
  device().free(there);
}

TEST("large arrays, which several threads copy, arrive whole in both directions") {
  const int threads = tensor::thread_count();
  tensor::set_thread_count(4);
  for (const size_t bytes : {size_t{1} << 18, (size_t{1} << 19) + 1, (size_t{5} << 20) + 12'345}) {
    std::vector<char> from(bytes), back(bytes);
    for (size_t i = 0; i < bytes; i++) from[i] = byte_at(i);
    for (const bool is_detached : {false, true}) {
      void* const there = device().allocate(bytes);
      if (is_detached)
        device().start_upload(there, from.data(), bytes);
      else
        device().upload(there, from.data(), bytes);
      std::fill(back.begin(), back.end(), '\0');
      device().download(back.data(), there, bytes);
      CHECK(has_pattern(back.data(), bytes));
      device().free(there);
    }
  }
  tensor::set_thread_count(threads);
}

int main() { return test::run_on_device(); }
