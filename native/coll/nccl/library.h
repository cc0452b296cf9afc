// NVIDIA's library of collectives (libnccl.so.2), opened when it is first asked for. The declarations are our own, as
// in base/cuda/cuda_driver.h; test/nccl/nccl_abi_test.cc compares them with nccl.h. 2.18 or newer.
#pragma once

#include <climits>
#include <cstddef>
#include <string>

#include "base/cuda/cuda_driver.h"
#include "base/shared_library.h"
#include "coll/failure/failure.h"

namespace ringwise::nccl {

using Comm = struct CommTag*;

/// What the ranks of a new communicator meet by. Passed by value.
struct UniqueId {
  char bytes[128];
};

/// ncclConfig_t as 2.18 has it, and the field that later filled its end. Newer ones append; the library takes what is
/// missing as not set, going by size and version.
struct Config {
  size_t size = sizeof(Config);
  unsigned magic = 0xcafebeef;
  unsigned version = 21800;
  int blocking = 0;
  int unset[3] = {INT_MIN, INT_MIN, INT_MIN};
  const char* net_name = nullptr;
  int more_unset[2] = {INT_MIN, INT_MIN};
};

// name, arguments. All return ncclResult_t.
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
  X(ncclRedOpDestroy, (int, Comm))
// clang-format on

// The same, of 2.19 (registration) and 2.28 (the rest) and newer: null where the library is older.
// clang-format off
#define RINGWISE_NCCL_NEWER_FUNCTIONS(X)                                              \
  X(ncclCommRegister, (Comm, void*, size_t, void**))                                  \
  X(ncclCommDeregister, (Comm, void*))                                                \
  X(ncclAlltoAll, (const void*, void*, size_t, int, Comm, cuda::Stream))              \
  X(ncclGather, (const void*, void*, size_t, int, int, Comm, cuda::Stream))           \
  X(ncclScatter, (const void*, void*, size_t, int, int, Comm, cuda::Stream))
// clang-format on

// Numbers of nccl.h that are used here.
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
  std::string reason;  // why it cannot be used, with every path that was tried; empty when it can
};

/// Opened at the first call, in any thread. Never throws.
const Library& library();

/// Whether it reduces floats of 8 bits on every device of this process.
bool reduces_float8();

/// "2.30.7"
std::string version_text(int version);

/// What the library says about `result`, and what it noted last about `comm`, which may be null.
std::string text_of(int result, Comm comm);

}  // namespace ringwise::nccl
