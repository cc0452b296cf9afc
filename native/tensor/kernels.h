// What CPUs and devices can compute, without Node. The kernels, the structs that they receive and their table are
// declared in packages/tensor/src/backends/declarations; native/generate writes declared_kernels.h from there, with one
// table of functions for each instruction set and one for CUDA. The addon picks one when it loads; tests walk through
// all of them. Tensors have the dtypes float32, float64, float16, bfloat16, int32, int64, uint8 and bool.
//
// Three types compute: float (for float32, float16 and bfloat16), double (float64) and int64_t (integers and bool).
// Kernels that take operands of any dtype convert elements when they read and write them (on a CPU tile by tile, in
// cpu/elementwise/tile.h), so an elementwise operation is written once per computing type and knows neither dtypes nor
// strides.
//
// Sizes are elements. Nothing here checks arguments: the TypeScript ops have done so, and the binding compares extents
// with memory. The declarations say where an output may be an input (`map`, `copy`, `linearGrad`); no output overlaps
// an input partly. A CPU kernel gives the same bits for the same inputs at the same level, whatever the number of
// threads (threads.h). The CPU kernels that allocate are matrix products, convolutions and attention, whose working
// space each thread keeps, and float64 attention and `sort`, which free theirs.
#pragma once

#include "tensor/declared_kernels.h"
#include "tensor/optimizer.h"

namespace ringwise::tensor {

using ringwise::CpuLevel;

/// Returns the table of level `cap`, or of the best level that CPU and build have if that is lower.
const Kernels& kernels_for(CpuLevel cap);

}  // namespace ringwise::tensor
