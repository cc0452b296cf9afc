// What CPUs and devices can compute, without Node. The kernels, the structs that they receive and their table are
// declared in packages/tensor/src/backends/declarations; native/generate writes declared_kernels.h from there, with one
// table of functions for each instruction set and one for CUDA. The addon picks one when it loads; tests walk through
// all of them. Tensors have the dtypes float32, float64, float16, bfloat16, int32, int64, uint8 and bool.
//
// Three types compute: float (for float32, float16 and bfloat16), double (float64) and int64_t (integers and bool).
// Operands of any dtype are converted when they are read and when they are written, tile by tile
// (cpu/elementwise/tile.h), so an operation is written once per computing type and knows neither dtypes nor strides.
//
// Sizes are elements. Nothing here checks arguments: the TypeScript ops have done so, and the binding compares extents
// with memory. An output may be equal to an input of `map`, but never overlaps one partly. Every kernel gives the same
// bits for the same inputs at the same level, whatever the number of threads (threads.h). Only `matmul`, the
// convolutions and attention (working space, kept per thread) and `sort` allocate.
#pragma once

#include "tensor/declared_kernels.h"
#include "tensor/optimizer.h"

namespace ringwise::tensor {

using ringwise::CpuLevel;

/// Returns the table of `cap`, or of the best level where the CPU has less.
const Kernels& kernels_for(CpuLevel cap);

}  // namespace ringwise::tensor
