#include "base/cuda/cuda_driver.h"

#include "base/os/environment.h"

namespace ringwise::cuda {

namespace {

std::string text_of(const Driver& d, int status) {
  const char *name = nullptr, *text = nullptr;
  if (d.cuGetErrorName && d.cuGetErrorName(status, &name) == kSuccess && name &&
      d.cuGetErrorString(status, &text) == kSuccess && text) {
    return std::string(text) + " (" + name + ")";
  }
  return "error " + std::to_string(status) + " of the driver";
}

/// Binds the functions. Returns the name of the first one that the library lacks, or null.
const char* bind(Driver& d) {
#define RINGWISE_BIND(name, arguments) \
  if (!d.library.bind(#name, d.name)) return #name;
  RINGWISE_DRIVER_FUNCTIONS(RINGWISE_BIND)
#undef RINGWISE_BIND
  d.library.bind("cuFuncLoad", d.cuFuncLoad);
  return nullptr;
}

Driver load() {
  Driver d;
  d.library = SharedLibrary({"RINGWISE_LIBCUDA", {"libcuda.so.1"}, {}});
  if (!d.library.is_open()) {
    d.reason = "no CUDA driver: " + d.library.failures();
    return d;
  }
  if (const char* missing = bind(d)) {
    d.reason = d.library.path() + " has no " + missing + "; CUDA 12.0 (driver 525) or newer is needed";
    return d;
  }
  // Streams share this many hardware queues (8 by default), in which work waits for work of unrelated streams. A
  // process has more than 8 streams: of tensors, two of each group, and those of NCCL. 32 is the maximum.
  os::default_variable("CUDA_DEVICE_MAX_CONNECTIONS", "32");
  int status = d.cuInit(0);
  if (status == kSuccess) status = d.cuDriverGetVersion(&d.version);
  if (status == kSuccess) status = d.cuDeviceGetCount(&d.device_count);
  if (status != kSuccess) {
    d.device_count = 0;
    d.reason = text_of(d, status);
  } else if (d.device_count == 0) {
    d.reason = "the driver reports no devices";
  }
  return d;
}

}  // namespace

const Driver& driver() {
  static const Driver loaded = load();
  return loaded;
}

void check(int status, const char* what) {
  if (status == kSuccess) return;
  std::string text = std::string(what) + ": " + text_of(driver(), status);
  if (status == kOutOfMemory)
    text += ". The driver needs device memory for itself, and there is none left; other processes may hold it";
  throw CudaError(status, text);
}

}  // namespace ringwise::cuda
