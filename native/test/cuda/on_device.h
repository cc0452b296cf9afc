// The main function and helpers of tests that need a CUDA device: the software device of software_gpu/, or a GPU with
// RINGWISE_TEST_GPU=1.
#pragma once

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "tensor/cuda/device/device.h"
#include "tensor/cuda/device/info.h"
#include "test/check.h"

namespace ringwise::test {

/// Returns whether the tests run on a GPU, not on the software device.
inline bool is_on_gpu() {
  const char* gpu = std::getenv("RINGWISE_TEST_GPU");
  return gpu && std::strcmp(gpu, "1") == 0;
}

/// Blocks a stream of the device from its construction until its destruction: a callback does not return.
class Blocked {
 public:
  explicit Blocked(tensor::cuda::Stream stream) { tensor::cuda::Device::call_back(stream, &Blocked::wait, this); }
  ~Blocked() {
    is_free_ = true;
    while (!has_ended_) std::this_thread::yield();
  }
  Blocked(const Blocked&) = delete;
  Blocked& operator=(const Blocked&) = delete;

 private:
  static void wait(tensor::cuda::Stream, int, void* data) {
    auto* self = static_cast<Blocked*>(data);
    while (!self->is_free_) std::this_thread::yield();
    self->has_ended_ = true;
  }
  std::atomic<bool> is_free_ = false, has_ended_ = false;
};

/// Returns whether the device runs work only when the host waits for it: the software device without its asynchronous
/// mode. Then tests can check that work has not ended yet.
inline bool runs_late() { return tensor::cuda::info().devices[0].name == "software GPU"; }

/// Runs all tests, or prints why it skips them if there is no device. Returns the exit status. RINGWISE_LIBCUDA may
/// name a software device other than that of this build. `with_libraries`: the software device also stands in for
/// cuBLASLt and cuDNN.
inline int run_on_device([[maybe_unused]] bool with_libraries = false) {
#ifdef RINGWISE_SOFTWARE_CUDA
  if (!is_on_gpu()) {
    setenv("RINGWISE_LIBCUDA", RINGWISE_SOFTWARE_CUDA, 0);
    for (const char* library : {"RINGWISE_LIBCUBLASLT", "RINGWISE_LIBCUDNN"}) {
      if (with_libraries) setenv(library, std::getenv("RINGWISE_LIBCUDA"), 1);
    }
  }
#endif
  const tensor::cuda::Info info = tensor::cuda::info();
  if (info.devices.empty()) {
    std::printf("skipped %zu tests: %s\n", cases().size(), info.reason.c_str());
    return 0;
  }
  std::printf("on %s\n", info.devices[0].name.c_str());
  tensor::cuda::Device::get(0).enter();
  return run_all();
}

}  // namespace ringwise::test
