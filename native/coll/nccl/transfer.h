// An operation as calls of NCCL. What NCCL has no function for, parts of different lengths, gather, scatter and
// all-to-all, is a group of its others.
#pragma once

#include "coll/nccl/library.h"
#include "coll/op.h"

namespace ringwise::nccl {

/// Gives `op` to the stream; a result of NCCL, which may be kInProgress. A barrier is nothing. No messages.
int enqueue(const coll::Op& op, Comm comm, int rank, int size, cuda::Stream stream);

}  // namespace ringwise::nccl
