// Convolution, pooling, sums by channel, group normalisation and steps of an LSTM. Included by the source files that
// the build makes of level.cc.in.
// clang-format off: each header uses the ones before it
#include "tensor/cpu/simd.h"
#include "tensor/cpu/elementwise/transpose.h"
#include "tensor/cpu/elementwise/math.h"
#include "tensor/cpu/elementwise/functions.h"
#include "tensor/cpu/elementwise/tile.h"
#include "tensor/cpu/elementwise/common.h"
#include "tensor/cpu/reduce/totals.h"
#include "tensor/cpu/matrix/gemm_kernel.h"
#include "tensor/cpu/matrix/gemm_pack.h"
#include "tensor/cpu/elementwise/activation.h"
#include "tensor/cpu/matrix/gemm_dot.h"
#include "tensor/cpu/matrix/gemm_store.h"
#include "tensor/cpu/matrix/gemm.h"
#include "tensor/cpu/nn/conv.h"
#include "tensor/cpu/nn/pool.h"
#include "tensor/cpu/nn/channels.h"
#include "tensor/cpu/nn/group_norm.h"
#include "tensor/cpu/nn/lstm.h"
// clang-format on
