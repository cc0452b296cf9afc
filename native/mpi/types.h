// Maps element types and reductions to those of MPI.
#pragma once

#include <mpi.h>

#include <cstddef>

#include "coll/op.h"

namespace ringwise::mpi {

/// Returns the MPI datatype for reductions of `dtype`. MPI has none for floats of 16 and 8 bits: returns MPI_FLOAT for
/// them, and the caller converts the elements.
MPI_Datatype type_of(DType dtype);

/// Returns an MPI datatype of the same size, for calls that only copy elements.
MPI_Datatype copy_type_of(DType dtype);

/// Returns the largest number of elements of a vector that we pass to one MPI call: 1 GiB of this dtype. MPI's counts
/// are ints, and a broadcast of more than 2^31 bytes fails in MPICH 4.0.
inline size_t max_count(DType dtype) { return (size_t{1} << 30) / byte_size(dtype); }

/// Returns the MPI operation for a reduction; the caller does not free it. It is MPI's own if that has our semantics.
/// For min and max it is one that this module created, because ours return NaN when a rank has NaN, and because MPICH
/// 4.0 compares uint8 as signed. For avg and premulSum it is the sum: the caller divides the result of avg, and
/// multiplies the input of premulSum.
MPI_Op op_of(coll::ReduceOp reduce, DType dtype);

}  // namespace ringwise::mpi
