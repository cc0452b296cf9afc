// A CUDA driver for tests, whose two devices are the CPU: a library that takes the place of libcuda.so.1
// (RINGWISE_LIBCUDA), with the functions of base/cuda/cuda_driver.h and our kernels compiled for the CPU. So all code
// above the driver and every line of the kernels run in tests where there is no GPU, also under sanitizers. Tests with
// it do not show that the kernels are right in parallel, how the real driver behaves, or how fast anything is. It
// refuses what the real driver is known to refuse: calls without a context, streams and events of another context,
// capturing the default stream, and so on.
//
// It sets all bits of memory before it hands it out, so that floats are NaN and indices are out of range. In
// asynchronous mode, freed memory becomes inaccessible and its addresses are not used again: an access ends the
// process. streams.h says when work runs.
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "test/software_gpu/asynchronous.h"
#include "test/software_gpu/blocks.h"
#include "test/software_gpu/streams.h"
#include "test/software_gpu/virtual_memory.h"

#define EXPORT extern "C" __attribute__((visibility("default"))) int

namespace {

using namespace ringwise::software_gpu;

enum Status {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kInvalidDevice = 101,
  kInvalidImage = 200,
  kNoContext = 201,
  kInvalidHandle = 400,
  kNotFound = 500,
  kNotReady = 600,
  kIllegalAddress = 700,
  kAlreadyRegistered = 712,
  kNotRegistered = 713,
  kLaunchFailed = 719,
  kNotPermitted = 800,
  kCapturedEvent = 907
};
constexpr int kDevices = 2, kOwnVersion = 13000;
constexpr size_t kDeviceBytes = size_t{512} << 20, kAlignment = 512;

std::mutex mutex;  // guards memory, used, pinned and registered
struct Allocation {
  size_t bytes;
  int device;
};
std::map<unsigned long long, Allocation> memory;
size_t used[kDevices];
std::map<void*, size_t> pinned;            // host memory of the driver: size in bytes, by address
std::map<const char*, size_t> registered;  // host memory: size in bytes, by address
thread_local int current = -1;             // the device whose context is current on this thread; -1: none

struct KernelEntry {
  Body body;
  int bytes;
  bool waits;
};

int context_of(int device) { return device + 1; }

/// Returns whether these bytes are in one allocation.
bool is_allocated(unsigned long long address, size_t bytes) {
  const std::lock_guard lock(mutex);
  auto found = memory.upper_bound(address);
  if (found == memory.begin()) return false;
  --found;
  return address - found->first <= found->second.bytes && bytes <= found->second.bytes - (address - found->first);
}
bool is_valid(unsigned long long address, size_t bytes) {
  return is_allocated(address, bytes) || is_mapped(address, bytes);
}

/// Submits work that needs a current context.
int start(void* stream, Work work) {
  return current < 0 ? static_cast<int>(kNoContext) : submit(static_cast<SoftwareStream*>(stream), std::move(work));
}

/// Returns whether host memory is registered completely or not at all. The driver refuses copies of partly registered
/// memory.
bool is_uniformly_registered(const void* data, size_t bytes) {
  const std::lock_guard lock(mutex);
  const auto* const begin = static_cast<const char*>(data);
  for (const auto& [first, length] : registered) {
    if (begin < first + length && first < begin + bytes) return begin >= first && begin + bytes <= first + length;
  }
  return true;
}

/// Returns whether the stream belongs to the context of `device`. A null stream is the default stream of the current
/// context.
bool is_of(const SoftwareStream* stream, int device) { return (stream ? stream->device : current) == device; }

/// Returns the driver's version. Tests may choose an old one, which does not load images of newer compilers.
int version_told() {
  const char* const wanted = std::getenv("RINGWISE_SOFTWARE_CUDA_VERSION");
  return wanted ? std::atoi(wanted) : kOwnVersion;
}

/// Returns the device's major compute capability. Tests may choose an old one.
int major_told() {
  const char* const wanted = std::getenv("RINGWISE_SOFTWARE_CUDA_MAJOR");
  return wanted ? std::atoi(wanted) : 9;
}

void* own_symbol(const std::string& name) {
  static void* self = [] {
    Dl_info info{};
    dladdr(reinterpret_cast<void*>(&own_symbol), &info);
    return dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  }();
  return dlsym(self, name.c_str());
}

/// Rounds up to whole pages.
size_t paged(size_t bytes) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return (bytes + page - 1) / page * page;
}

/// Allocates memory for the device, or pinned memory of the host.
void* allocate(size_t bytes) {
  void* data = nullptr;
  if (is_asynchronous()) {
    data = mmap(nullptr, paged(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED) return nullptr;
  } else {
    data = std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
  }
  if (data) std::memset(data, 0xff, bytes);
  return data;
}

/// Frees what allocate() has returned; in asynchronous mode, keeps the addresses inaccessible until the process ends.
void release(void* data, size_t bytes) {
  if (!is_asynchronous()) return std::free(data);
  mmap(data, paged(bytes), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

/// Begins a call that the driver may answer by waiting for the device. Returns a status other than success if no
/// context is current, or if a capture forbids the call.
int begin_unsafe() {
  pass_time();
  return current < 0 ? static_cast<int>(kNoContext) : refuse_unsafe();
}

}  // namespace

int ringwise::software_gpu::current_device() { return current; }
bool ringwise::software_gpu::is_device(int device) { return device >= 0 && device < kDevices; }
bool ringwise::software_gpu::take_bytes(int device, size_t bytes) {
  const std::lock_guard lock(mutex);
  if (bytes > kDeviceBytes - used[device]) return false;
  used[device] += bytes;
  return true;
}
void ringwise::software_gpu::return_bytes(int device, size_t bytes) {
  const std::lock_guard lock(mutex);
  used[device] -= bytes;
}

/// For tests: CUDA_DEVICE_MAX_CONNECTIONS when the driver was initialised, which is when the real one reads it.
extern "C" {
__attribute__((visibility("default"))) int softwareCudaConnections = 0;
}

EXPORT cuInit(unsigned) {
  const char* const connections = std::getenv("CUDA_DEVICE_MAX_CONNECTIONS");
  softwareCudaConnections = connections ? std::atoi(connections) : 8;
  return kSuccess;
}
/// Tells our addon, by its presence, that this library contains the kernels (see no_images.cc).
extern "C" __attribute__((visibility("default"))) const int ringwise_software_kernels = kOwnVersion;

EXPORT cuDriverGetVersion(int* version) { return *version = version_told(), kSuccess; }
EXPORT cuDeviceGetCount(int* count) { return *count = kDevices, kSuccess; }
EXPORT cuDeviceGet(int* device, int index) {
  if (index < 0 || index >= kDevices) return kInvalidDevice;
  return *device = index, kSuccess;
}
EXPORT cuDeviceGetName(char* name, int bytes, int) {
  std::snprintf(name, static_cast<size_t>(bytes), "%s", device_name().c_str());
  return kSuccess;
}
EXPORT cuDeviceTotalMem_v2(size_t* bytes, int) { return *bytes = kDeviceBytes, kSuccess; }
EXPORT cuDeviceGetAttribute(int* value, int attribute, int) {
  // Compute capability 9.0, two multiprocessors, virtual memory with all kinds of handles.
  *value = attribute == 75 ? major_told() : attribute == 76 ? 0 : attribute == 16 ? 2 : 1;
  return kSuccess;
}
EXPORT cuGetErrorName(int status, const char** name) {
  static const std::map<int, const char*> names = {
      {kInvalidValue, "CUDA_ERROR_INVALID_VALUE"},
      {kOutOfMemory, "CUDA_ERROR_OUT_OF_MEMORY"},
      {kInvalidDevice, "CUDA_ERROR_INVALID_DEVICE"},
      {kNoContext, "CUDA_ERROR_INVALID_CONTEXT"},
      {kNotFound, "CUDA_ERROR_NOT_FOUND"},
      {kIllegalAddress, "CUDA_ERROR_ILLEGAL_ADDRESS"},
      {kLaunchFailed, "CUDA_ERROR_LAUNCH_FAILED"},
      {kNotPermitted, "CUDA_ERROR_NOT_PERMITTED"},
      {kInvalidImage, "CUDA_ERROR_INVALID_IMAGE"},
      {kInvalidHandle, "CUDA_ERROR_INVALID_HANDLE"},
      {900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"},
      {901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"},
      {902, "CUDA_ERROR_STREAM_CAPTURE_MERGE"},
      {903, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED"},
      {904, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED"},
      {905, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION"},
      {906, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT"},
      {kCapturedEvent, "CUDA_ERROR_CAPTURED_EVENT"},
      {908, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD"},
  };
  const auto found = names.find(status);
  if (found == names.end()) return kInvalidValue;
  return *name = found->second, kSuccess;
}
EXPORT cuGetErrorString(int status, const char** text) { return cuGetErrorName(status, text); }

EXPORT cuDevicePrimaryCtxRetain(void** context, int device) {
  *context = reinterpret_cast<void*>(static_cast<intptr_t>(context_of(device)));
  return kSuccess;
}
EXPORT cuCtxSetCurrent(void* context) {
  current = static_cast<int>(reinterpret_cast<intptr_t>(context)) - 1;
  return kSuccess;
}
EXPORT cuCtxGetCurrent(void** context) {
  *context = reinterpret_cast<void*>(static_cast<intptr_t>(current + 1));
  return kSuccess;
}

EXPORT cuMemGetInfo_v2(size_t* free, size_t* total) {
  if (current < 0) return kNoContext;
  const std::lock_guard lock(mutex);
  *free = kDeviceBytes - used[current];
  *total = kDeviceBytes;
  return kSuccess;
}
EXPORT cuMemAlloc_v2(unsigned long long* address, size_t bytes) {
  if (const int status = begin_unsafe()) return status;
  if (bytes == 0) return kInvalidValue;
  const std::lock_guard lock(mutex);
  if (bytes > kDeviceBytes - used[current]) return kOutOfMemory;
  void* data = allocate(bytes);
  if (!data) return kOutOfMemory;
  used[current] += bytes;
  *address = reinterpret_cast<unsigned long long>(data);
  memory[*address] = {bytes, current};
  return kSuccess;
}
EXPORT cuMemFree_v2(unsigned long long address) {
  if (const int status = begin_unsafe()) return status;
  synchronize_all();
  const std::lock_guard lock(mutex);
  const auto found = memory.find(address);
  if (found == memory.end()) return kInvalidValue;
  given_back(reinterpret_cast<void*>(address), found->second.bytes);
  used[found->second.device] -= found->second.bytes;
  release(reinterpret_cast<void*>(address), found->second.bytes);
  memory.erase(found);
  return kSuccess;
}
EXPORT cuMemHostAlloc(void** data, size_t bytes, unsigned) {
  if (const int status = begin_unsafe()) return status;
  if (bytes == 0 || !(*data = allocate(bytes))) return kOutOfMemory;
  const std::lock_guard lock(mutex);
  return pinned[*data] = bytes, kSuccess;
}
EXPORT cuMemFreeHost(void* data) {
  if (const int status = begin_unsafe()) return status;
  synchronize_all();
  const std::lock_guard lock(mutex);
  const auto found = pinned.find(data);
  if (found == pinned.end()) return kInvalidValue;
  release(data, found->second);
  return pinned.erase(found), kSuccess;
}

EXPORT cuMemHostRegister_v2(void* data, size_t bytes, unsigned) {
  if (const int status = begin_unsafe()) return status;
  if (!data || bytes == 0) return kInvalidValue;
  const std::lock_guard lock(mutex);
  const auto* const begin = static_cast<const char*>(data);
  for (const auto& [other, length] : registered) {
    if (other < begin + bytes && begin < other + length) return kAlreadyRegistered;
  }
  return registered[begin] = bytes, kSuccess;
}
EXPORT cuMemHostUnregister(void* data) {
  if (const int status = begin_unsafe()) return status;
  synchronize_all();
  const std::lock_guard lock(mutex);
  return registered.erase(static_cast<const char*>(data)) > 0 ? kSuccess : kNotRegistered;
}

EXPORT cuMemcpyHtoDAsync_v2(unsigned long long to, const void* from, size_t bytes, void* stream) {
  if (!is_uniformly_registered(from, bytes)) return kInvalidValue;
  if (!is_valid(to, bytes)) return kIllegalAddress;
  return start(stream, [=] { return std::memcpy(reinterpret_cast<void*>(to), from, bytes), kSuccess; });
}
EXPORT cuMemcpyDtoHAsync_v2(void* to, unsigned long long from, size_t bytes, void* stream) {
  if (!is_uniformly_registered(to, bytes)) return kInvalidValue;
  if (!is_valid(from, bytes)) return kIllegalAddress;
  return start(stream, [=] { return std::memcpy(to, reinterpret_cast<const void*>(from), bytes), kSuccess; });
}
EXPORT cuMemcpyDtoDAsync_v2(unsigned long long to, unsigned long long from, size_t bytes, void* stream) {
  if (!is_valid(to, bytes) || !is_valid(from, bytes)) return kIllegalAddress;
  return start(stream, [=] {
    return std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes), kSuccess;
  });
}

EXPORT cuStreamCreate(SoftwareStream** stream, unsigned flags) {
  if (current < 0) return kNoContext;
  return *stream = create_stream(current, (flags & 1) == 0), kSuccess;
}
EXPORT cuStreamDestroy_v2(SoftwareStream* stream) {
  if (!stream) return kInvalidHandle;
  return destroy_stream(stream), kSuccess;
}
EXPORT cuStreamSynchronize(SoftwareStream* stream) { return synchronize(stream); }
EXPORT cuStreamWaitEvent(SoftwareStream* stream, SoftwareEvent* event, unsigned) { return wait(stream, event); }
EXPORT cuEventCreate(SoftwareEvent** event, unsigned flags) {
  if (current < 0) return kNoContext;
  *event = new SoftwareEvent;
  (*event)->device = current;
  (*event)->has_time = (flags & 2) == 0;
  return kSuccess;
}
EXPORT cuEventDestroy_v2(SoftwareEvent* event) { return destroy(event), kSuccess; }
EXPORT cuEventRecord(SoftwareEvent* event, SoftwareStream* stream) {
  return is_of(stream, event->device) ? record(event, stream) : static_cast<int>(kInvalidHandle);
}
EXPORT cuEventSynchronize(SoftwareEvent* event) { return synchronize(event); }
/// For tests: how often cuEventQuery has been called.
extern "C" {
__attribute__((visibility("default"))) std::atomic<int> softwareCudaQueries = 0;
}
EXPORT cuEventQuery(SoftwareEvent* event) { return softwareCudaQueries++, query(event); }
EXPORT cuEventElapsedTime(float* milliseconds, SoftwareEvent* from, SoftwareEvent* to) {
  if (!from->has_time || !to->has_time || !from->stream || !to->stream) return kInvalidHandle;
  if (from->capture || to->capture) return kCapturedEvent;
  if (!is_reached(from) || !is_reached(to)) return kNotReady;
  return *milliseconds = static_cast<float>(*to->time_ms - *from->time_ms), kSuccess;
}
EXPORT cuStreamAddCallback(SoftwareStream* stream, void (*function)(SoftwareStream*, int, void*), void* data,
                           unsigned) {
  return current < 0 ? static_cast<int>(kNoContext) : call(stream, function, data);
}

EXPORT cuStreamBeginCapture_v2(SoftwareStream* stream, int mode) {
  if (mode < 0 || mode > 2) return kInvalidValue;
  return begin_capture(stream, static_cast<CaptureMode>(mode));
}
EXPORT cuStreamEndCapture(SoftwareStream* stream, Graph** graph) { return end_capture(stream, graph); }
EXPORT cuGraphInstantiateWithFlags(ExecutableGraph** executable, Graph* graph, unsigned long long) {
  return *executable = instantiate(*graph), kSuccess;
}
EXPORT cuGraphDestroy(Graph* graph) { return delete graph, kSuccess; }
EXPORT cuGraphLaunch(ExecutableGraph* executable, SoftwareStream* stream) { return launch(*executable, stream); }
EXPORT cuGraphExecDestroy(ExecutableGraph* executable) { return delete executable, kSuccess; }

EXPORT cuLibraryLoadData(void** library, const void* image, int*, void**, unsigned, int*, void**, unsigned) {
  if (version_told() < kOwnVersion) return kInvalidImage;
  if (const int status = refuse_unsafe()) return status;
  return *library = const_cast<void*>(image), kSuccess;
}
EXPORT cuLibraryGetKernel(void** kernel, void*, const char* name) {
  const auto symbol = [&](const char* what) { return own_symbol("ringwise_" + std::string(what) + "_" + name); };
  void* body = symbol("kernel");
  if (!body) return kNotFound;
  const auto number = [&](const char* what) { return reinterpret_cast<int (*)()>(symbol(what))(); };
  *kernel = new KernelEntry{reinterpret_cast<Body>(body), number("bytes"), number("waits") != 0};
  return kSuccess;
}
/// For tests: the number of kernels that have been loaded.
extern "C" {
__attribute__((visibility("default"))) std::atomic<int> softwareCudaLoads = 0;
}
EXPORT cuKernelGetFunction(void** function, void* kernel) {
  return current < 0 ? static_cast<int>(kNoContext) : (*function = kernel, kSuccess);
}
EXPORT cuFuncLoad(void*) { return softwareCudaLoads++, kSuccess; }
EXPORT cuLaunchKernel(void* kernel, unsigned x, unsigned y, unsigned z, unsigned threads, unsigned threads_y,
                      unsigned threads_z, unsigned, void* stream, void** parameters, void** extra) {
  const auto* entry = static_cast<const KernelEntry*>(kernel);
  const bool is_one_block = extra && !parameters && extra[0] == reinterpret_cast<void*>(1) &&
                            extra[2] == reinterpret_cast<void*>(2) && extra[4] == nullptr;
  if (!is_one_block || *static_cast<const size_t*>(extra[3]) != static_cast<size_t>(entry->bytes)) return kInvalidValue;
  if (x == 0 || y == 0 || z == 0 || y > 65535 || z > 65535 || threads == 0 || threads > 1024 || threads_y != 1 ||
      threads_z != 1) {
    return kInvalidValue;
  }
  if (current >= 0 && !is_of(static_cast<SoftwareStream*>(stream), current)) return kInvalidHandle;
  // The argument block is read at the launch, as the real driver does.
  std::vector<long double> arguments((static_cast<size_t>(entry->bytes) + sizeof(long double) - 1) /
                                     sizeof(long double));
  std::memcpy(arguments.data(), extra[1], static_cast<size_t>(entry->bytes));
  return start(stream, [entry, x, y, z, threads, arguments = std::move(arguments)] {
    return static_cast<int>(
        run_grid(entry->body, arguments.data(), {x, y, z}, {threads, 1, 1}, entry->waits) ? kSuccess : kLaunchFailed);
  });
}

/// For tests: makes the device fail all work that it has not begun yet, and all later work.
EXPORT softwareCudaBreak() { return break_device(kIllegalAddress), kSuccess; }

/// For tests of the asynchronous mode: chooses it and its seed. Call it before anything allocates memory.
EXPORT softwareCudaSeed(unsigned long long seed) { return choose_seed(seed), kSuccess; }
