// What the CPU can compute, without Node. One table of functions per instruction set; the addon picks one when it
// loads, tests walk through all of them. Tensors have the dtypes float32, float64, float16, bfloat16, int32, int64,
// uint8 and bool.
//
// Three types compute: float (for float32, float16 and bfloat16), double (float64) and int64_t (integers and bool).
// Operands of any dtype are converted when they are read and when they are written, tile by tile (cpu/tile.h), so an
// operation is written once per computing type and knows neither dtypes nor strides.
//
// Sizes are elements. Nothing here checks arguments: the TypeScript ops have done so. An output may be equal to an
// input of `map`, but never overlaps one partly. Every kernel gives the same bits for the same inputs at the same
// level, whatever the number of threads (threads.h). Only `matmul`, the convolutions and attention (working space, kept
// per thread) and `sort` allocate.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/dtype.h"
#include "base/target.h"
#include "tensor/attention.h"
#include "tensor/cross_entropy.h"
#include "tensor/linear.h"
#include "tensor/norm.h"
#include "tensor/optimizer.h"
#include "tensor/random.h"
#include "tensor/walk.h"

namespace ringwise::tensor {

// The order of these is part of the addon's interface; packages/tensor/src/backends/kernels.ts has the same.
enum class MapOp : int {
  Neg,
  Abs,
  Sign,
  Exp,
  Log,
  Sqrt,
  Rsqrt,
  Square,
  Sin,
  Cos,
  Tanh,
  Sigmoid,
  Relu,
  Erf,
  Gelu,
  GeluTanh,
  Silu,
  Floor,
  Ceil,
  Round,
  Trunc,
  LogicalNot,
  Add,
  Sub,
  Mul,
  Div,
  Pow,
  Max,
  Min,
  Eq,
  Ne,
  Lt,
  Le,
  LogicalAnd,
  LogicalOr,
  LogicalXor,
  ReluGrad,
  SigmoidGrad,
  TanhGrad,
  GeluGrad,
  GeluTanhGrad,
  SiluGrad,
  Where,
  MulAdd,
  Clamp,
  InRange,
  Count,
};
enum class ReduceOp : int { Sum, Mean, Prod, Max, Min };
using ringwise::CpuLevel;

/// One matrix product. Steps count elements from one stored row to the next.
struct MatmulSizes {
  size_t m, n, k;
  size_t a_step, b_step;
  bool trans_a, trans_b, accumulate;
};

/// A dense tensor seen as [outer, size, inner], with the elements along `size` being looked up: [outer, count, inner].
struct LookupSizes {
  size_t outer, count, size, inner;
  bool per_element;  // the index has the shape of the result; otherwise it is [count]
};

/// A window that slides over planes [height, width]. Position (oy, ox) begins at row oy * stride_y - pad_top and column
/// ox * stride_x - pad_left; its rows are dilation_y apart, its columns dilation_x.
struct Window {
  size_t height, width, out_height, out_width, kernel_height, kernel_width;
  size_t stride_y, stride_x, dilation_y, dilation_x, pad_top, pad_left;
};

/// Dense x [batch, groups, in_channels, height, width], weight [groups, out_channels, in_channels, kernel_height,
/// kernel_width] and out [batch, groups, out_channels, out_height, out_width].
struct ConvSizes {
  size_t batch, groups, in_channels, out_channels;  // channels of one group
  Window window;
};

struct PoolSizes {
  size_t planes, height, width, out_height, out_width;
};

struct Kernels {
  CpuLevel level;
  const char* name;

  /// Operand 0 = op(operands 1 …), computed in the type that serves `compute`.
  void (*map)(MapOp, DType compute, const Walk&);
  /// Operand 0 = operand 1, converted: floats to integers towards zero, anything but zero to true.
  void (*copy)(const Walk&);

  /// Operand 0 is dense over the dimensions that are kept, with stride 0 along those that are reduced. Over nothing a
  /// sum is 0, a product 1, a mean NaN, a maximum the least value.
  void (*reduce)(ReduceOp, const Walk&);
  /// Reduces into int64: the position of the first extreme among the reduced elements. NaN is the most extreme.
  void (*arg_reduce)(bool is_max, const Walk&);

  /// c[m,n] = op(A)[m,k] op(B)[k,n], plus c when `accumulate`; c is dense. A transposed operand is stored [k,m] or
  /// [n,k].
  void (*matmul)(float* c, const float* a, const float* b, const MatmulSizes&);
  void (*matmul_double)(double* c, const double* a, const double* b, const MatmulSizes&);
  /// As those, for every index of a walk whose strides are bytes, and of float16 and bfloat16 too, summed in float32.
  /// Null where matrices are taken one by one.
  void (*matmul_walk)(const Walk&, const MatmulSizes&);

  /// Null where a layer is a product and elementwise operations.
  void (*linear)(DType, const Linear&);
  void (*linear_grad)(DType, const LinearGrad&);

  /// Row by row over dense float32 or float64.
  void (*log_softmax)(DType, void* out, const void* a, size_t rows, size_t cols);
  void (*log_softmax_grad)(DType, void* grad_in, const void* grad_out, const void* out, size_t rows, size_t cols);
  /// Labels are int32 or int64 and inside [0, cols).
  void (*nll)(DType, void* losses, const void* log_probs, DType label, const void* labels, size_t rows, size_t cols);
  void (*nll_grad)(DType, void* grad_in, const void* grad_losses, DType label, const void* labels, size_t rows,
                   size_t cols);
  void (*cross_entropy)(DType, const CrossEntropy&);
  void (*cross_entropy_grad)(DType, const CrossEntropyGrad&);

  /// out = the elements of a that int64 indices name along `size`.
  void (*lookup)(DType, void* out, const void* a, const int64_t* index, const LookupSizes&);
  /// The way back: adds a[outer, count, inner] to the elements of out[outer, size, inner] that the indices name.
  void (*scatter_add)(DType, void* out, const void* a, const int64_t* index, const LookupSizes&);

  /// Dense [outer, size, inner] -> running sums along size, from the end when `reverse`.
  void (*cumsum)(DType, void* out, const void* a, size_t outer, size_t size, size_t inner, bool reverse);
  /// The first `count` of each sorted row, and where they stood. Stable; NaN counts as the largest.
  void (*sort)(DType, void* values, int64_t* indices, const void* a, size_t rows, size_t cols, size_t count,
               bool descending);
  /// Dense [batch, rows, cols] with zeros above (below, when `upper`) the given diagonal.
  void (*triangle)(DType, void* out, const void* a, size_t batch, size_t rows, size_t cols, int64_t diagonal,
                   bool upper);

  /// Dense float32 or float64; on CUDA also float16 or bfloat16, summed in float32. What a window covers outside of its
  /// plane counts as 0.
  void (*conv2d)(DType, void* out, const void* x, const void* weight, const ConvSizes&);
  void (*conv2d_grad_input)(DType, void* grad_x, const void* grad, const void* weight, const ConvSizes&,
                            bool accumulate);
  void (*conv2d_grad_weight)(DType, void* grad_weight, const void* grad, const void* x, const ConvSizes&,
                             bool accumulate);

  /// Dense float32 or float64 planes. The largest element under each window, and its position in the plane; padding is
  /// never taken. NaN counts as the largest. A window that covers nothing gives -inf and position 0.
  void (*max_pool)(DType, void* out, int64_t* positions, const void* a, size_t planes, const Window&);
  /// Sums over boxes. `bins` has for each output row, then for each output column: begin, end and divisor.
  void (*avg_pool)(DType, void* out, const void* a, const int64_t* bins, const PoolSizes&);
  void (*avg_pool_grad)(DType, void* grad_in, const void* grad, const int64_t* bins, const PoolSizes&);

  /// Dense float32 or float64 [outer, channels, inner]. out[2, channels]: the mean of each channel, and the sum of the
  /// squared distances from it.
  void (*channel_moments)(DType, void* out, const void* a, size_t outer, size_t channels, size_t inner);
  /// out[2, channels]: the sum of `grad`, and of grad * (a - mean), with a mean for each channel.
  void (*channel_grad_sums)(DType, void* out, const void* grad, const void* a, const void* mean, size_t outer,
                            size_t channels, size_t inner);

  void (*norm)(DType, const Norm&);
  void (*norm_grad)(DType, const NormGrad&);
  void (*attention)(DType, const Attention&);
  void (*attention_grad)(DType, const AttentionGrad&);

  void (*random)(RandomKind, void* out, size_t count, const Stream&, double low, double high);
  /// out[i] = 0 where word i of the stream is below p * 2^32, else a[i] / (1 - p). Dense float32 or float64; p < 1.
  void (*dropout)(DType, void* out, const void* a, size_t count, double p, const Stream&);

  /// One step of an optimiser for all tensors.
  void (*optimize)(const OptimizerRule&, const OptimizerTensor*, size_t count);
  /// The root of the sum of the squares of all elements of all `param`, summed in double.
  double (*total_norm)(const OptimizerTensor*, size_t count);
  /// Multiplies every `param`; returns whether everything was finite.
  bool (*scale)(const OptimizerTensor*, size_t count, double factor);
  /// Start the same two without waiting for the result, which is written to device memory. Null on the CPU.
  void (*start_total_norm)(const OptimizerTensor*, size_t count, float* norm);
  /// Takes the factor from memory unless that is null; not_finite, which may be null, becomes 1 if anything was not.
  void (*start_scale)(const OptimizerTensor*, size_t count, const float* factor, double number, float* not_finite);
};

/// The table of `cap`, or of the best level where the CPU has less.
const Kernels& kernels_for(CpuLevel cap);

}  // namespace ringwise::tensor
