// What the CPU can compute on flat memory, without Node. One table of functions per instruction set; the addon
// picks one when it loads, tests walk through all of them. Of the dtypes, tensors have float32, int32 and int64.
//
// Sizes are elements. Nothing here checks arguments: the TypeScript ops have done so. `out` may be equal to an
// input of an elementwise kernel (`strided` inputs excepted) but never overlaps one partly. Every kernel gives the
// same bits for the same inputs at the same level. Only `matmul` allocates (packing buffers, kept per thread).
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/dtype.h"
#include "base/target.h"

namespace ringwise::tensor {

// The order of these is part of the addon's interface; backends/native.ts has the same.
enum class UnaryOp : int { Neg, Exp, Log, Sqrt, Square, Abs, Relu, Sigmoid, Tanh };
enum class BinaryOp : int { Add, Sub, Mul, Div, Max, Min, Eq, Lt, ReluGrad, SigmoidGrad, TanhGrad };
enum class ReduceOp : int { Sum, Max };
using ringwise::CpuLevel;

constexpr int kMaxRank = 16;

/// A dense output of this shape, walked beside N strided inputs. Strides count elements; 0 broadcasts. Only the
/// first `rank` entries are set.
template <int N>
struct Walk {
  int rank = 0;
  size_t shape[kMaxRank];
  ptrdiff_t strides[N][kMaxRank];
};

struct SgdOptions {
  float lr = 0;
  float momentum = 0;
  float dampening = 0;
  float weight_decay = 0;
  bool nesterov = false;
  bool first = false;  // the velocity becomes the gradient instead of being decayed
};

struct Kernels {
  CpuLevel level;
  const char* name;

  void (*fill)(DType, void* out, double value, size_t count);
  void (*copy)(DType to, void* out, DType from, const void* a, size_t count);
  void (*strided)(size_t element_bytes, void* out, const void* a, const Walk<1>&);

  void (*unary)(UnaryOp, float* out, const float* a, size_t count);
  void (*binary)(BinaryOp, DType, void* out, const void* a, const void* b, const Walk<2>&);
  void (*affine)(float* out, const float* a, float scale, float shift, size_t count);
  void (*axpy)(float* out, const float* a, float scale, size_t count);

  /// [outer, size, inner] -> [outer, inner]. Over size 0 a sum is 0 and a maximum the least value of the dtype.
  void (*reduce)(ReduceOp, DType, void* out, const void* a, size_t outer, size_t size, size_t inner);
  /// Index of the first maximum, NaN being the largest; size is not 0.
  void (*argmax)(DType, int32_t* out, const void* a, size_t outer, size_t size, size_t inner);

  /// c[m,n] = op(A)[m,k] op(B)[k,n], plus c when `accumulate`. Row-major; a transposed operand is stored [k,m] or [n,k].
  void (*matmul)(float* c, const float* a, const float* b, size_t m, size_t n, size_t k, bool trans_a, bool trans_b,
                 bool accumulate);

  void (*log_softmax)(float* out, const float* a, size_t rows, size_t cols);
  void (*log_softmax_grad)(float* grad_in, const float* grad_out, const float* out, size_t rows, size_t cols);
  /// Labels are int32 or int64 and inside [0, cols).
  void (*nll)(float* losses, const float* log_probs, DType, const void* labels, size_t rows, size_t cols);
  void (*nll_grad)(float* grad_in, const float* grad_losses, DType, const void* labels, size_t rows, size_t cols);

  /// velocity is null without momentum.
  void (*sgd)(float* param, const float* grad, float* velocity, const SgdOptions&, size_t count);
};

/// The table of `cap`, or of the best level where the CPU has less.
const Kernels& kernels_for(CpuLevel cap);

}  // namespace ringwise::tensor
