// Elementwise operations and copies. Included by the source files that the build makes of level.cc.in.
// clang-format off: each header uses the ones before it
#include "tensor/cpu/simd.h"
#include "tensor/cpu/elementwise/transpose.h"
#include "tensor/cpu/elementwise/math.h"
#include "tensor/cpu/elementwise/functions.h"
#include "tensor/cpu/elementwise/pairs.h"
#include "tensor/cpu/elementwise/tile.h"
#include "tensor/cpu/elementwise/common.h"
#include "tensor/cpu/elementwise/movement.h"
#include "tensor/cpu/elementwise/map.h"
// clang-format on
