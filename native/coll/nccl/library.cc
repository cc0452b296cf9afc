#include "coll/nccl/library.h"

namespace ringwise::nccl {

namespace {

// Up to 2.26, the thread that NCCL starts for calls of a communicator that does not block uses the job list of the
// calling thread, so two groups on one thread corrupt it. 2.27 gives each group of calls a list of its own.
constexpr int kOldest = 22700;

/// Binds the functions. Returns the name of the first required one that the library lacks, or null.
const char* bind(Library& n) {
#define RINGWISE_BIND(name, arguments) \
  if (!n.file.bind(#name, n.name)) return #name;
  RINGWISE_NCCL_FUNCTIONS(RINGWISE_BIND)
#undef RINGWISE_BIND
#define RINGWISE_TRY(name, arguments) n.file.bind(#name, n.name);
  RINGWISE_NCCL_NEWER_FUNCTIONS(RINGWISE_TRY)
#undef RINGWISE_TRY
  if (!n.file.bind("ncclGetErrorString", n.ncclGetErrorString)) return "ncclGetErrorString";
  return n.file.bind("ncclGetLastError", n.ncclGetLastError) ? nullptr : "ncclGetLastError";
}

Library load() {
  Library n;
  n.file = SharedLibrary({"RINGWISE_LIBNCCL", {"libnccl.so.2", "libnccl.so"}, {"nccl/lib"}});
  if (!n.file.is_open()) {
    n.reason = "libnccl was not found: " + n.file.failures();
    return n;
  }
  const char* const missing = bind(n);
  if (!missing && n.ncclGetVersion(&n.version) == kSuccess && n.version >= kOldest) return n;
  n.reason = n.file.path() + (missing ? std::string(" has no ") + missing : " is version " + version_text(n.version)) +
             "; expected NCCL 2.27 or newer, because older versions mix up the groups of a thread";
  return n;
}

}  // namespace

const Library& library() {
  static const Library loaded = load();
  return loaded;
}

bool reduces_float8() {
  // Devices before compute capability 9.0 have no kernels for them: NCCL refuses the call as an invalid argument.
  constexpr int kFirstMajor = 9;
  const cuda::Driver& driver = cuda::driver();
  if (driver.device_count == 0) return false;
  for (int device = 0; device < driver.device_count; ++device) {
    int major = 0;
    if (driver.cuDeviceGetAttribute(&major, cuda::kAttributeMajor, device) != cuda::kSuccess || major < kFirstMajor)
      return false;
  }
  return true;
}

std::string version_text(int version) {
  const int major = version / 10000, minor = version / 100 % 100, patch = version % 100;
  return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(patch);
}

std::string text_of(int result, Comm comm) {
  const Library& n = library();
  std::string text = n.ncclGetErrorString(result);
  const char* const last = n.ncclGetLastError(comm);
  if (last != nullptr && *last != '\0') text.append(" (").append(last).append(")");
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

}  // namespace ringwise::nccl
