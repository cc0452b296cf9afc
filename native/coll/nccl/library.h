// Loads NVIDIA's NCCL (libnccl.so.2, version 2.27 or newer) on first use. The declarations are our own, as in
// base/cuda/cuda_driver.h; test/nccl/nccl_abi_test.cc compares them with nccl.h.
#pragma once

#include <climits>
#include <cstddef>
#include <string>

#include "base/cuda/cuda_driver.h"
#include "base/shared_library.h"
#include "coll/failure/failure.h"

namespace ringwise::nccl {

using Comm = struct CommTag*;

/// ncclUniqueId: identifies a new communicator, so that its ranks find each other. Passed by value.
struct UniqueId {
  char bytes[128];
};

/// The first fields of ncclConfig_t. Newer versions append fields; the library sees from size and version that those
/// are not set.
struct Config {
  size_t size = sizeof(Config);
  unsigned magic = 0xcafebeef;
  unsigned version = 21800;
  int blocking = 0;
  int unset[3] = {INT_MIN, INT_MIN, INT_MIN};
  const char* net_name = nullptr;
  int more_unset[2] = {INT_MIN, INT_MIN};
};

// Name and arguments of the functions that every supported version has. All return ncclResult_t.
// clang-format off
#define RINGWISE_NCCL_FUNCTIONS(X)                                                                   \
  X(ncclGetVersion, (int*))                                                                          \
  X(ncclGetUniqueId, (UniqueId*))                                                                    \
  X(ncclCommInitRankConfig, (Comm*, int, UniqueId, int, Config*))                                    \
  X(ncclCommFinalize, (Comm))                                                                        \
  X(ncclCommDestroy, (Comm))                                                                         \
  X(ncclCommAbort, (Comm))                                                                           \
  X(ncclCommGetAsyncError, (Comm, int*))                                                             \
  X(ncclAllReduce, (const void*, void*, size_t, int, int, Comm, cuda::Stream))                       \
  X(ncclReduce, (const void*, void*, size_t, int, int, int, Comm, cuda::Stream))                     \
  X(ncclBroadcast, (const void*, void*, size_t, int, int, Comm, cuda::Stream))                       \
  X(ncclAllGather, (const void*, void*, size_t, int, Comm, cuda::Stream))                            \
  X(ncclReduceScatter, (const void*, void*, size_t, int, int, Comm, cuda::Stream))                   \
  X(ncclSend, (const void*, size_t, int, int, Comm, cuda::Stream))                                   \
  X(ncclRecv, (void*, size_t, int, int, Comm, cuda::Stream))                                         \
  X(ncclGroupStart, ())                                                                              \
  X(ncclGroupEnd, ())                                                                                \
  X(ncclRedOpCreatePreMulSum, (int*, void*, int, int, Comm))                                         \
  X(ncclRedOpDestroy, (int, Comm))                                                                   \
  X(ncclCommRegister, (Comm, void*, size_t, void**))                                                 \
  X(ncclCommDeregister, (Comm, void*))
// clang-format on

// Functions since 2.28; null if the library is older.
// clang-format off
#define RINGWISE_NCCL_NEWER_FUNCTIONS(X)                                              \
  X(ncclAlltoAll, (const void*, void*, size_t, int, Comm, cuda::Stream))              \
  X(ncclGather, (const void*, void*, size_t, int, int, Comm, cuda::Stream))           \
  X(ncclScatter, (const void*, void*, size_t, int, int, Comm, cuda::Stream))
// clang-format on

// Constants of nccl.h.
constexpr int kSuccess = 0, kInProgress = 7;
constexpr int kInt8 = 0, kUint8 = 1, kInt32 = 2, kUint32 = 3, kInt64 = 4, kUint64 = 5, kFloat16 = 6, kFloat32 = 7,
              kFloat64 = 8, kBfloat16 = 9, kFloat8e4m3 = 10, kFloat8e5m2 = 11;
constexpr int kSum = 0, kProd = 1, kMax = 2, kMin = 3, kAvg = 4;
constexpr int kScalarOfHost = 1;

struct Library {
#define RINGWISE_DECLARE(name, arguments) int(*name) arguments = nullptr;
  RINGWISE_NCCL_FUNCTIONS(RINGWISE_DECLARE)
  RINGWISE_NCCL_NEWER_FUNCTIONS(RINGWISE_DECLARE)
#undef RINGWISE_DECLARE
  const char* (*ncclGetErrorString)(int) = nullptr;
  const char* (*ncclGetLastError)(Comm) = nullptr;

  SharedLibrary file;
  int version = 0;     // 23007 is 2.30.7
  std::string reason;  // why it cannot be used, with all paths that were tried; empty if it can
};

/// Returns the library, and loads it at the first call. Any thread; never throws.
const Library& library();

/// Returns whether NCCL reduces 8-bit floats on every device of this process.
bool reduces_float8();

/// Returns the version as text, such as "2.30.7".
std::string version_text(int version);

/// Returns the library's text for `result`, followed by its last error text for `comm`, which may be null.
std::string text_of(int result, Comm comm);

}  // namespace ringwise::nccl
