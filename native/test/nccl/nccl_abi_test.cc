// Compares the declarations of coll/nccl/library.h with the vendor's if nccl.h is installed. If the library is found,
// also checks that it has all functions, and that it answers without a device.
#include <cstddef>
#include <cstdio>

#include "coll/nccl/library.h"
#include "test/abi.h"

#if __has_include(<nccl.h>)
#include <nccl.h>

namespace {

namespace nccl = ringwise::nccl;
#define COMPARE(name, arguments) \
  static_assert(Same<decltype(nccl::Library::name), decltype(&::name)>::value, #name " is not declared as in nccl.h");
RINGWISE_NCCL_FUNCTIONS(COMPARE)
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 28, 3)
RINGWISE_NCCL_NEWER_FUNCTIONS(COMPARE)
#endif
static_assert(Same<decltype(nccl::Library::ncclGetErrorString), decltype(&::ncclGetErrorString)>::value);
static_assert(Same<decltype(nccl::Library::ncclGetLastError), decltype(&::ncclGetLastError)>::value);

static_assert(sizeof(nccl::UniqueId) == sizeof(ncclUniqueId));
static_assert(sizeof(nccl::Config) <= sizeof(ncclConfig_t));
static_assert(offsetof(nccl::Config, magic) == offsetof(ncclConfig_t, magic));
static_assert(offsetof(nccl::Config, version) == offsetof(ncclConfig_t, version));
static_assert(offsetof(nccl::Config, blocking) == offsetof(ncclConfig_t, blocking));
static_assert(offsetof(nccl::Config, unset) == offsetof(ncclConfig_t, cgaClusterSize));
static_assert(offsetof(nccl::Config, net_name) == offsetof(ncclConfig_t, netName));
static_assert(offsetof(nccl::Config, more_unset) == offsetof(ncclConfig_t, splitShare));
static_assert(nccl::kSuccess == ncclSuccess && nccl::kInProgress == ncclInProgress);
static_assert(nccl::kInt8 == ncclInt8 && nccl::kUint8 == ncclUint8 && nccl::kInt32 == ncclInt32 &&
              nccl::kUint32 == ncclUint32);
static_assert(nccl::kInt64 == ncclInt64 && nccl::kUint64 == ncclUint64 && nccl::kFloat16 == ncclFloat16);
static_assert(nccl::kFloat32 == ncclFloat32 && nccl::kFloat64 == ncclFloat64 && nccl::kBfloat16 == ncclBfloat16);
static_assert(nccl::kFloat8e4m3 == ncclFloat8e4m3 && nccl::kFloat8e5m2 == ncclFloat8e5m2);
static_assert(nccl::kSum == ncclSum && nccl::kProd == ncclProd && nccl::kMax == ncclMax && nccl::kMin == ncclMin &&
              nccl::kAvg == ncclAvg);
static_assert(nccl::kScalarOfHost == ncclScalarHostImmediate);
constexpr int kHeader = NCCL_VERSION_CODE;

}  // namespace
#else
constexpr int kHeader = 0;
#endif

int main() {
  if (kHeader)
    std::printf("compared with nccl.h %d\n", kHeader);
  else
    std::printf("declarations: skipped, nccl.h is not installed\n");
  const ringwise::nccl::Library& n = ringwise::nccl::library();
  if (!n.file.is_open()) {
    std::printf("library: skipped, %s\n", n.reason.c_str());
    return 0;
  }
  std::printf("%s: %s, \"%s\"\n", n.file.path().c_str(),
              n.reason.empty() ? ringwise::nccl::version_text(n.version).c_str() : n.reason.c_str(),
              n.reason.empty() ? ringwise::nccl::text_of(ringwise::nccl::kInProgress, nullptr).c_str() : "");
  return n.reason.empty() ? 0 : 1;
}
