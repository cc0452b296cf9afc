// An operation as calls of NCCL. What NCCL has no function for (parts of different lengths; before 2.28 gather, scatter
// and all-to-all) is a group of its others.
#pragma once

#include "coll/nccl/library.h"
#include "coll/op.h"

namespace ringwise::nccl {

/// Gives `op` to the stream; a result of NCCL, which may be kInProgress. A barrier is nothing. No messages.
int enqueue(const coll::Op& op, Comm comm, int rank, int size, cuda::Stream stream);

/// What `each(0)` to `each(count - 1)` call, as one group of NCCL's. Groups may lie in groups.
template <class Each>
int grouped(int count, const Each& each) {
  const Library& n = library();
  int status = n.ncclGroupStart();
  for (int i = 0; i < count && status == kSuccess; ++i) {
    status = each(i);
    if (status == kInProgress) status = kSuccess;  // the end of the group tells
  }
  const int end = n.ncclGroupEnd();
  return status == kSuccess ? end : status;
}

}  // namespace ringwise::nccl
