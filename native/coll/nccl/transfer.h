// Translates operations to NCCL calls. Where NCCL has no function (uneven parts; gather, scatter and all-to-all before
// 2.28), an operation becomes an NCCL group of other calls.
#pragma once

#include "coll/nccl/library.h"
#include "coll/op.h"

namespace ringwise::nccl {

/// Enqueues `op` on the stream. Returns an NCCL result, which may be kInProgress. Does nothing for a barrier. Does not
/// take sends and receives.
int enqueue(const coll::Op& op, Comm comm, int rank, int size, cuda::Stream stream);

/// Calls `each(0)` to `each(count - 1)` as one NCCL group. Groups may be nested.
template <class Each>
int grouped(int count, const Each& each) {
  const Library& n = library();
  int status = n.ncclGroupStart();
  for (int i = 0; i < count && status == kSuccess; ++i) {
    status = each(i);
    if (status == kInProgress) status = kSuccess;  // ncclGroupEnd returns the result of the group
  }
  const int end = n.ncclGroupEnd();
  return status == kSuccess ? end : status;
}

}  // namespace ringwise::nccl
