// Tests the asynchronous mode of the software device: programs that lack a wait fail within a few seeds, and the same
// programs with the wait pass at every seed; freed memory is inaccessible; a capture refuses what a driver refuses.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "base/cuda/cuda_driver.h"
#include "test/check.h"

using namespace ringwise::cuda;

namespace {

constexpr size_t kBytes = 64;
constexpr int kSeeds = 20;
constexpr int kCaptureGlobal = 0, kCaptureThreadLocal = 1;
constexpr int kCaptureUnsupported = 900, kCaptureInvalidated = 901, kCaptureImplicit = 906, kCapturedEvent = 907,
              kCaptureWrongThread = 908;

DevicePointer memory() {
  DevicePointer address = 0;
  check(driver().cuMemAlloc_v2(&address, kBytes), "cuMemAlloc");
  return address;
}
/// Returns pinned memory whose bytes are all `value`.
unsigned char* host(unsigned char value) {
  void* data = nullptr;
  check(driver().cuMemHostAlloc(&data, kBytes, 0), "cuMemHostAlloc");
  std::fill_n(static_cast<unsigned char*>(data), kBytes, value);
  return static_cast<unsigned char*>(data);
}
Stream stream(unsigned flags = kStreamNonBlocking) {
  Stream made = nullptr;
  check(driver().cuStreamCreate(&made, flags), "cuStreamCreate");
  return made;
}
Event event() {
  Event made = nullptr;
  check(driver().cuEventCreate(&made, kEventDisableTiming), "cuEventCreate");
  return made;
}
void up(DevicePointer to, const void* from, Stream on) {
  check(driver().cuMemcpyHtoDAsync_v2(to, from, kBytes, on), "cuMemcpyHtoD");
}
void down(void* to, DevicePointer from, Stream on) {
  check(driver().cuMemcpyDtoHAsync_v2(to, from, kBytes, on), "cuMemcpyDtoH");
}
void copy(DevicePointer to, DevicePointer from, Stream on) {
  check(driver().cuMemcpyDtoDAsync_v2(to, from, kBytes, on), "cuMemcpyDtoD");
}
void wait(Stream on) { check(driver().cuStreamSynchronize(on), "cuStreamSynchronize"); }
/// Lets `after` wait for the work that `before` has now.
void order(Stream before, Stream after) {
  const Event mark = event();
  check(driver().cuEventRecord(mark, before), "cuEventRecord");
  check(driver().cuStreamWaitEvent(after, mark, 0), "cuStreamWaitEvent");
  check(driver().cuEventDestroy_v2(mark), "cuEventDestroy");
}

/// Streams and memory of a program.
struct Program {
  Stream first = stream(), second = stream();
  DevicePointer a = memory(), b = memory();
  unsigned char *one = host(1), *two = host(2), *out = host(0);

  ~Program() {
    for (const Stream each : {first, second}) driver().cuStreamDestroy_v2(each);
    for (const DevicePointer each : {a, b}) driver().cuMemFree_v2(each);
    for (unsigned char* each : {one, two, out}) driver().cuMemFreeHost(each);
  }
  /// Returns the last byte of b, which is 1 if a program is right.
  int result() {
    wait(first);
    wait(second);
    down(out, b, first);
    wait(first);
    return out[kBytes - 1];
  }
};

/// Runs a program at every seed and returns the number of seeds at which its result was wrong.
int wrong(bool waits, const std::function<int(bool)>& program) {
  const auto choose = reinterpret_cast<int (*)(unsigned long long)>(driver().library.symbol("softwareCudaSeed"));
  int count = 0;
  for (int seed = 0; seed < kSeeds; seed++) {
    choose(static_cast<unsigned long long>(seed));
    count += program(waits) != 1;
  }
  return count;
}
/// Checks that a program without its wait is wrong at some seed, and with it at none.
void expect_detected(const std::function<int(bool)>& program) {
  CHECK(wrong(false, program) > 0);
  CHECK_EQ(wrong(true, program), 0);
}

/// Returns whether the host can read this memory: the system refuses to write from an inaccessible address.
bool is_accessible(const void* data) {
  int ends[2];
  if (pipe(ends) != 0) return false;
  const bool can = write(ends[1], data, 1) == 1;
  for (const int file : ends) close(file);
  return can;
}

/// Captures work on a stream while `call` runs, and returns the status of `call` and of the end of the capture.
std::pair<int, int> captured(int mode, const std::function<int()>& call, unsigned flags = kStreamNonBlocking) {
  const Stream on = stream(flags);
  check(driver().cuStreamBeginCapture_v2(on, mode), "cuStreamBeginCapture");
  const int status = call();
  Graph graph = nullptr;
  const int end = driver().cuStreamEndCapture(on, &graph);
  if (graph) driver().cuGraphDestroy(graph);
  driver().cuStreamDestroy_v2(on);
  return {status, end};
}

}  // namespace

TEST("a stream that does not wait for the data of another one reads too early") {
  expect_detected([](bool waits) {
    Program p;
    up(p.a, p.one, p.first);
    if (waits) order(p.first, p.second);
    copy(p.b, p.a, p.second);
    return p.result();
  });
}

TEST("a stream that does not wait for a reader overwrites its data") {
  expect_detected([](bool waits) {
    Program p;
    up(p.a, p.one, p.first);
    copy(p.b, p.a, p.first);
    if (waits) order(p.first, p.second);
    up(p.a, p.two, p.second);
    return p.result();
  });
}

TEST("streams that write the same memory without an order leave the wrong value") {
  expect_detected([](bool waits) {
    Program p;
    up(p.b, p.two, p.first);
    if (waits) order(p.first, p.second);
    up(p.b, p.one, p.second);
    return p.result();
  });
}

TEST("pinned memory that the host writes or reads before its copy has ended has the wrong values") {
  expect_detected([](bool waits) {
    Program p;
    up(p.b, p.one, p.first);
    if (waits) wait(p.first);
    std::fill_n(p.one, kBytes, 2);
    return p.result();
  });
  expect_detected([](bool waits) {
    Program p;
    up(p.a, p.one, p.first);
    down(p.out, p.a, p.first);
    if (waits) wait(p.first);
    return static_cast<int>(p.out[0]);
  });
}

TEST("an event that is recorded before the work does not order it") {
  expect_detected([](bool waits) {
    Program p;
    const Event mark = event();
    if (!waits) check(driver().cuEventRecord(mark, p.first), "cuEventRecord");
    up(p.a, p.one, p.first);
    if (waits) check(driver().cuEventRecord(mark, p.first), "cuEventRecord");
    while (driver().cuEventQuery(mark) == kNotReady) {
    }
    driver().cuEventDestroy_v2(mark);
    copy(p.b, p.a, p.second);
    return p.result();
  });
}

TEST("the default stream waits for blocking streams, and they for it; other streams do not") {
  for (const bool first : {false, true}) {
    expect_detected([first](bool waits) {
      Program p;
      const Stream beside = stream(waits ? 0 : kStreamNonBlocking);
      up(p.a, p.one, first ? nullptr : beside);
      copy(p.b, p.a, first ? beside : nullptr);
      wait(first ? beside : nullptr);
      driver().cuStreamDestroy_v2(beside);
      return p.result();
    });
  }
}

TEST("all work of a graph begins after earlier work of the stream of its launch, and ends before later work") {
  expect_detected([](bool waits) {
    Program p;
    const Stream beside = stream();
    check(driver().cuStreamBeginCapture_v2(p.first, kCaptureRelaxed), "cuStreamBeginCapture");
    order(p.first, beside);
    copy(p.b, p.a, beside);
    order(beside, p.first);
    Graph graph = nullptr;
    check(driver().cuStreamEndCapture(p.first, &graph), "cuStreamEndCapture");
    GraphExec executable = nullptr;
    check(driver().cuGraphInstantiateWithFlags(&executable, graph, 0), "cuGraphInstantiate");
    up(p.a, p.two, p.first);
    check(driver().cuGraphLaunch(executable, p.first), "cuGraphLaunch");
    order(p.first, p.second);
    up(p.a, p.one, waits ? p.second : beside);
    check(driver().cuGraphLaunch(executable, p.second), "cuGraphLaunch");
    wait(p.second);
    const int result = p.result();
    driver().cuGraphExecDestroy(executable);
    driver().cuGraphDestroy(graph);
    driver().cuStreamDestroy_v2(beside);
    return result;
  });
}

TEST("freed memory is inaccessible") {
  const DevicePointer address = memory();
  unsigned char* const pinned = host(1);
  CHECK(is_accessible(reinterpret_cast<void*>(address)) && is_accessible(pinned));
  check(driver().cuMemFree_v2(address), "cuMemFree");
  check(driver().cuMemFreeHost(pinned), "cuMemFreeHost");
  CHECK(!is_accessible(reinterpret_cast<void*>(address)) && !is_accessible(pinned));
}

TEST("a capture refuses calls that may wait: of all threads, of its own, or of none, by its mode") {
  const DevicePointer address = memory();
  const Event mark = event();
  const Stream other = stream();
  DevicePointer made = 0;
  void* data = nullptr;
  const std::vector<std::function<int()>> calls = {
      [&] { return driver().cuMemAlloc_v2(&made, kBytes); },
      [&] { return driver().cuMemFree_v2(made ? made : address); },
      [&] { return driver().cuMemHostAlloc(&data, kBytes, 0); },
      [&] { return driver().cuEventQuery(mark); },
      [&] { return driver().cuEventSynchronize(mark); },
      [&] { return driver().cuStreamSynchronize(other); },
  };
  for (const auto& call : calls) {
    const auto elsewhere = [&call] {
      int status = 0;
      std::thread([&] {
        Context context = nullptr;
        check(driver().cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
        check(driver().cuCtxSetCurrent(context), "cuCtxSetCurrent");
        status = call();
      }).join();
      return status;
    };
    const std::pair refused(kCaptureUnsupported, kCaptureInvalidated), allowed(kSuccess, kSuccess);
    CHECK(captured(kCaptureGlobal, call) == refused);
    CHECK(captured(kCaptureGlobal, elsewhere) == refused);
    CHECK(captured(kCaptureThreadLocal, call) == refused);
    CHECK(captured(kCaptureRelaxed, call) == allowed);
  }
  CHECK_EQ(captured(kCaptureThreadLocal,
                    [&] {
                      int status = 0;
                      std::thread([&] { status = driver().cuEventQuery(mark); }).join();
                      return status;
                    })
               .second,
           kSuccess);
  check(driver().cuEventDestroy_v2(mark), "cuEventDestroy");
}

TEST("a capture refuses the default stream where that waits for it, and a thread that has not begun it") {
  const DevicePointer address = memory();
  unsigned char* const data = host(1);
  const auto by_default = [&] { return driver().cuMemcpyHtoDAsync_v2(address, data, kBytes, nullptr); };
  CHECK(captured(kCaptureRelaxed, by_default, 0) == std::pair(kCaptureImplicit, kCaptureInvalidated));
  CHECK(captured(kCaptureRelaxed, by_default) == std::pair(kSuccess, kSuccess));
  const Stream on = stream();
  check(driver().cuStreamBeginCapture_v2(on, kCaptureThreadLocal), "cuStreamBeginCapture");
  Graph graph = nullptr;
  int status = 0;
  std::thread([&] { status = driver().cuStreamEndCapture(on, &graph); }).join();
  CHECK_EQ(status, kCaptureWrongThread);
  CHECK_EQ(driver().cuStreamSynchronize(on), kCaptureUnsupported);
  CHECK_EQ(driver().cuStreamEndCapture(on, &graph), kCaptureInvalidated);
}

TEST("an event of a capture cannot be queried") {
  const Event mark = event();
  const Stream on = stream();
  check(driver().cuStreamBeginCapture_v2(on, kCaptureRelaxed), "cuStreamBeginCapture");
  check(driver().cuEventRecord(mark, on), "cuEventRecord");
  CHECK_EQ(driver().cuEventQuery(mark), kCaptureUnsupported);
  Graph graph = nullptr;
  CHECK_EQ(driver().cuStreamEndCapture(on, &graph), kCaptureInvalidated);
  CHECK_EQ(driver().cuEventQuery(mark), kCapturedEvent);
  check(driver().cuEventDestroy_v2(mark), "cuEventDestroy");
}

int main() {
#ifdef RINGWISE_SOFTWARE_CUDA
  setenv("RINGWISE_LIBCUDA", RINGWISE_SOFTWARE_CUDA, 1);
  setenv("RINGWISE_SOFTWARE_GPU", "async:0", 1);
  Context context = nullptr;
  check(driver().cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
  check(driver().cuCtxSetCurrent(context), "cuCtxSetCurrent");
  return ringwise::test::run_all();
#else
  std::puts("skipped: this build has no software device");
  return 0;
#endif
}
