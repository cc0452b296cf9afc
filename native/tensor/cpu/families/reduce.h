// Reductions, lookups, and kernels that visit the elements of a dimension in order (cumulative sums, sorting).
// The source files that the build makes of level.cc.in include this file.
// clang-format off: each header uses the ones before it
#include "tensor/cpu/simd.h"
#include "tensor/cpu/elementwise/transpose.h"
#include "tensor/cpu/elementwise/math.h"
#include "tensor/cpu/elementwise/functions.h"
#include "tensor/cpu/elementwise/tile.h"
#include "tensor/cpu/elementwise/common.h"
#include "tensor/cpu/reduce/totals.h"
#include "tensor/cpu/reduce/reduce.h"
#include "tensor/cpu/reduce/lookup.h"
#include "tensor/cpu/reduce/order.h"
// clang-format on
