// What MPI calls our element types and reductions.
#pragma once

#include <mpi.h>

#include <cstddef>

#include "coll/op.h"

namespace ringwise::mpi {

/// For reductions. Halves have none: they are reduced as float32.
MPI_Datatype type_of(DType dtype);

/// For moving: an element of as many bytes.
MPI_Datatype mover_of(DType dtype);

/// Elements that travel at once. MPI's counts are ints, and MPICH 4.0 does not broadcast more than 2^31 bytes.
inline size_t piece_of(DType dtype) { return (size_t{1} << 30) / byte_size(dtype); }

/// The built-in one where it has our meaning. min and max are ours: they give NaN where a rank has NaN, and MPICH 4.0
/// compares uint8 as if it had a sign. avg and premulSum are sums: the caller divides, or multiplies before.
MPI_Op op_of(coll::ReduceOp reduce, DType dtype);

}  // namespace ringwise::mpi
