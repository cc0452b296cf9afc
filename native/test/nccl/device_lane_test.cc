// Tests DeviceLane on the software driver (software_gpu/). Unless RINGWISE_SOFTWARE_GPU chooses its asynchronous mode,
// the driver runs work as late as possible, so code that lacks a necessary wait reads data that are not written yet.
#include "coll/device/device_lane.h"

#include <atomic>
#include <cstdlib>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "base/time/clock.h"
#include "test/check.h"

using namespace ringwise;
using coll::DeviceLane;
using cuda::driver;

namespace {

constexpr size_t kSlotBytes = 4096, kSlots = 3;
constexpr size_t kFloats = kSlotBytes / sizeof(float);

/// Makes the context of a device current on this thread.
void enter(int device) {
  cuda::Context context = nullptr;
  cuda::check(driver().cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
  cuda::check(driver().cuCtxSetCurrent(context), "cuCtxSetCurrent");
}

/// Floats on a device, and the stream that writes and reads them.
class Caller {
 public:
  explicit Caller(size_t pieces, int device = 0) : count_(pieces * kFloats) {
    enter(device);
    cuda::check(driver().cuMemAlloc_v2(&address_, count_ * sizeof(float)), "cuMemAlloc");
    cuda::check(driver().cuStreamCreate(&stream, cuda::kStreamNonBlocking), "cuStreamCreate");
  }
  ~Caller() {
    driver().cuStreamDestroy_v2(stream);
    driver().cuMemFree_v2(address_);
  }
  Caller(const Caller&) = delete;

  /// Puts a write on the stream. Returns before the stream has run it.
  void write(float value) {
    const std::vector<float>& from = sent_.emplace_back(count_, value);
    cuda::check(driver().cuMemcpyHtoDAsync_v2(address_, from.data(), count_ * sizeof(float), stream),
                "cuMemcpyHtoDAsync");
  }
  std::vector<float> read() {
    std::vector<float> into(count_);
    cuda::check(driver().cuMemcpyDtoHAsync_v2(into.data(), address_, count_ * sizeof(float), stream),
                "cuMemcpyDtoHAsync");
    cuda::check(driver().cuStreamSynchronize(stream), "cuStreamSynchronize");
    return into;
  }
  cuda::DevicePointer at(size_t piece) const { return address_ + piece * kSlotBytes; }

  cuda::Stream stream = nullptr;

 private:
  size_t count_;
  cuda::DevicePointer address_ = 0;
  std::deque<std::vector<float>> sent_;  // kept in place until the stream has read it
};

/// Host memory for the slots.
struct Host {
  std::vector<float> memory = std::vector<float>(kSlots * kFloats);
  float* slot(size_t index) { return memory.data() + index * kFloats; }
  std::unique_ptr<DeviceLane> open(int device = 0) {
    return std::make_unique<DeviceLane>(device, memory.data(), memory.size() * sizeof(float), kSlots);
  }
};

void count_up(cuda::Stream, int, void* count) { ++*static_cast<std::atomic<int>*>(count); }

void wait_for(const std::atomic<int>& count, int expected) {
  for (const int64_t begin = now_ns(); count < expected && now_ns() - begin < 10'000 * kMillisecond;)
    std::this_thread::yield();
  CHECK(count >= expected);
}

TEST("pieces come down after earlier work of the stream, and its later work reads the pieces that went up") {
  Caller caller(8);
  Host host;
  const auto lane = host.open();
  std::atomic<int> landed{0};
  for (int round = 1; round <= 3; ++round) {
    caller.write(static_cast<float>(round));
    lane->follow(caller.stream);
    size_t down = 0;
    const auto send_down = [&] {
      lane->begin(down % kSlots);
      // Copy the piece in two parts, like an operation with several buffers.
      lane->down(down % kSlots, 0, caller.at(down), kSlotBytes / 4);
      lane->down(down % kSlots, kSlotBytes / 4, caller.at(down) + kSlotBytes / 4, kSlotBytes * 3 / 4);
      lane->land(down % kSlots, &count_up, &landed);
      ++down;
    };
    while (down < kSlots) send_down();
    for (size_t piece = 0; piece < 8; ++piece) {
      const size_t slot = piece % kSlots;
      // The data must be in the slot both after await_landing() and after the callback.
      if (round % 2 == 0)
        lane->await_landing(slot);
      else
        wait_for(landed, (round - 1) * 8 + static_cast<int>(piece) + 1);
      std::thread lane_of_the_ranks([&] {
        for (size_t i = 0; i < kFloats; ++i) host.slot(slot)[i] += static_cast<float>(10 * piece);
      });
      lane_of_the_ranks.join();
      lane->up(slot, 0, caller.at(piece), kSlotBytes);
      lane->end(slot);
      if (down < 8) send_down();
    }
    lane->lead(caller.stream);
    const std::vector<float> found = caller.read();
    for (size_t i = 0; i < found.size(); ++i)
      CHECK_EQ(found[i], static_cast<float>(round) + static_cast<float>(10 * (i / kFloats)));
    wait_for(landed, round * 8);
  }
}

TEST("a slot is filled anew after its data have gone up, and data go up after earlier work of the stream") {
  Caller from(1), to(1);
  Host host;
  const auto lane = host.open();
  to.write(7);
  lane->follow(to.stream);
  for (float& value : host.memory) value = 1;
  lane->up(0, 0, to.at(0), kSlotBytes);
  lane->end(0);
  from.write(2);
  lane->follow(from.stream);
  lane->begin(0);
  lane->down(0, 0, from.at(0), kSlotBytes);
  std::atomic<int> landed{0};
  lane->land(0, &count_up, &landed);
  lane->await_landing(0);
  CHECK_EQ(host.slot(0)[0], 2.0f);
  lane->lead(to.stream);
  CHECK(to.read() == std::vector<float>(kFloats, 1));
  wait_for(landed, 1);
}

TEST("a lane that leaves waits for copies under way, and the thread keeps its context") {
  Caller caller(kSlots, 1);
  enter(0);
  Host host;
  auto lane = host.open(1);
  std::atomic<int> landed{0};
  caller.write(3);
  lane->follow(caller.stream);
  for (size_t slot = 0; slot < kSlots; ++slot) {
    lane->down(slot, 0, caller.at(slot), kSlotBytes);
    lane->land(slot, &count_up, &landed);
  }
  cuda::Context before = nullptr, after = nullptr;
  driver().cuCtxGetCurrent(&before);
  CHECK(lane->leave(10'000 * kMillisecond));
  CHECK(lane->leave(0));
  driver().cuCtxGetCurrent(&after);
  CHECK(before == after);
  for (const float value : host.memory) CHECK_EQ(value, 3.0f);
  CHECK_EQ(landed.load(), static_cast<int>(kSlots));
}

TEST("a lane whose device is stuck is left as it is, and its memory stays registered") {
  Caller caller(1);
  Host host;
  std::atomic<bool> goes_on{false};
  enter(0);
  cuda::check(driver().cuStreamAddCallback(
                  caller.stream,
                  [](cuda::Stream, int, void* flag) {
                    while (!*static_cast<std::atomic<bool>*>(flag)) std::this_thread::yield();
                  },
                  &goes_on, 0),
              "cuStreamAddCallback");
  const auto lane = host.open();
  lane->follow(caller.stream);
  lane->down(0, 0, caller.at(0), kSlotBytes);
  const int64_t begin = now_ns();
  CHECK(!lane->leave(50 * kMillisecond));
  CHECK(now_ns() - begin < 5'000 * kMillisecond);
  CHECK(!host.open()->is_registered());
  goes_on = true;
  CHECK(lane->leave(10'000 * kMillisecond));
  CHECK(host.open()->is_registered());
}

TEST("memory is registered as long as its lane is there; a second lane does without") {
  Host host;
  Caller caller(1, 1);
  auto first = host.open();
  CHECK(first->is_registered());
  {
    const auto second = host.open(1);
    CHECK(!second->is_registered());
    caller.write(5);
    second->follow(caller.stream);
    second->down(1, 0, caller.at(0), kSlotBytes);
    std::atomic<int> landed{0};
    second->land(1, &count_up, &landed);
    second->await_landing(1);
    CHECK_EQ(host.slot(1)[kFloats - 1], 5.0f);
    wait_for(landed, 1);
  }
  CHECK(!host.open()->is_registered());  // the second lane did not unregister the memory of the first
  first.reset();
  CHECK(host.open()->is_registered());
}

TEST("a lane that cannot be opened leaves nothing behind") {
  Host host;
  auto& functions = const_cast<cuda::Driver&>(driver());
  static int events = 0;
  events = 0;
  const auto known =
      std::exchange(functions.cuEventCreate, [](cuda::Event*, unsigned) { return ++events == 4 ? 2 : 0; });
  std::string message;
  try {
    host.open();
  } catch (const std::exception& error) {
    message = error.what();
  }
  functions.cuEventCreate = known;
  CHECK_EQ(message.substr(0, 15), "cuEventCreate: ");
  CHECK(host.open()->is_registered());
}

TEST("copies beyond a slot, and slots and devices that do not exist, are refused") {
  Host host;
  Caller caller(1);
  const auto lane = host.open();
  const auto told = [](const auto& call) -> std::string {
    try {
      call();
    } catch (const std::exception& error) {
      return error.what();
    }
    return "nothing";
  };
  for (const auto& [slot, offset, bytes] : {std::tuple{kSlots, size_t{0}, size_t{4}},
                                            {size_t{2}, kSlotBytes - 3, size_t{4}},
                                            {size_t{0}, kSlotBytes + 1, size_t{0}},
                                            {size_t{1}, size_t{8}, ~size_t{0}}}) {
    CHECK_EQ(told([&] { lane->down(slot, offset, caller.at(0), bytes); }), "a copy leaves its slot");
    CHECK_EQ(told([&] { lane->up(slot, offset, caller.at(0), bytes); }), "a copy leaves its slot");
  }
  CHECK(told([&] { lane->await_landing(kSlots); }) != "nothing");
  CHECK_EQ(told([&] { host.open(2); }), "there is no such device; 2 were found");
  CHECK_EQ(told([&] { host.open(-1); }), "there is no such device; 2 were found");
}

}  // namespace

int main() {
  setenv("RINGWISE_LIBCUDA", RINGWISE_SOFTWARE_NCCL, 1);
  return ringwise::test::run_all();
}
