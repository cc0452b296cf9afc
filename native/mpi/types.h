// Maps element types and reductions to those of MPI.
#pragma once

#include <mpi.h>

#include <cstddef>

#include "coll/op.h"

namespace ringwise::mpi {

/// Returns the MPI type for reductions. Narrow floats have none; they are reduced as float32.
MPI_Datatype type_of(DType dtype);

/// Returns an MPI type of the same size, to move elements without arithmetic.
MPI_Datatype mover_of(DType dtype);

/// Returns the most elements that one MPI call moves. MPI's counts are ints, and MPICH 4.0 does not broadcast more than
/// 2^31 bytes.
inline size_t piece_of(DType dtype) { return (size_t{1} << 30) / byte_size(dtype); }

/// Returns the MPI operation: the built-in one if it has our semantics. min and max are our own, because they return
/// NaN when a rank has NaN, and because MPICH 4.0 compares uint8 as signed. avg and premulSum are sums: the caller
/// divides afterwards or multiplies before.
MPI_Op op_of(coll::ReduceOp reduce, DType dtype);

}  // namespace ringwise::mpi
