// Checks of calls that extents do not express; a declaration asks for one by `isChecked`. Each throws before its kernel
// runs. The ops have checked the same with better words, so an error here is a bug of the package.
#pragma once

#include <limits>
#include <stdexcept>

#include "node/tensor/tensor_call.h"

namespace ringwise::node {

[[noreturn]] inline void refuse(const char* what) {
  throw std::invalid_argument(std::string("kernel call: ") + what + " This is a bug in @ringwise/tensor.");
}

inline void check(const Call&, const tensor::ArgReduce& x) {
  if (x.walk.operand[0].dtype != DType::Int64) refuse("argReduce: the output is not int64.");
}

/// Checks the sizes of a product. Also converts the strides of the walk to bytes and adds a dimension of size 1, as the
/// kernels expect.
inline void check(const Call& call, tensor::Matmul& x) {
  if (x.m == 0 || x.n == 0 || x.k == 0 || x.walk.rank == tensor::kMaxRank) refuse("matmul: bad sizes.");
  tensor::Walk& walk = x.walk;
  const DType dtype = walk.operand[0].dtype;
  // Returns the number of elements from the first to the last of a stored matrix.
  const auto span = [](size_t rows, size_t cols, size_t step) { return sum(product(rows - 1, step), cols); };
  size_t counts[] = {product(x.m, x.n), x.trans_a ? span(x.k, x.m, x.a_step) : span(x.m, x.k, x.a_step),
                     x.trans_b ? span(x.n, x.k, x.b_step) : span(x.k, x.n, x.b_step)};
  bool is_empty = false;
  for (int d = 0; d < walk.rank; d++) is_empty |= walk.shape[d] == 0;
  for (size_t i = 0; i < 3; i++) {
    for (int d = 0; d < walk.rank; d++) {
      ptrdiff_t& stride = walk.operand[i].strides[d];
      if (stride < 0) refuse("matmul: a stride between matrices is negative.");
      if (!is_empty) counts[i] = sum(counts[i], product(walk.shape[d] - 1, static_cast<size_t>(stride)));
      stride *= static_cast<ptrdiff_t>(byte_size(dtype));
    }
    if (!is_empty) call.dense(i, dtype, counts[i]);
    walk.operand[i].strides[walk.rank] = 0;
  }
  walk.shape[walk.rank++] = 1;
}

/// Checks indices in host memory; kernels of a device check indices themselves.
inline void check_indices(const Call& call, const tensor::LookupSizes& x, const int64_t* index) {
  if (!call.is_on_host()) return;
  const size_t count = x.per_element ? product(x.outer, x.count, x.inner) : x.count;
  for (size_t i = 0; i < count; i++) {
    if (index[i] < 0 || static_cast<size_t>(index[i]) >= x.size)
      throw std::out_of_range("lookup: an index is out of range.");
  }
}
inline void check(const Call& call, const tensor::Lookup& x) { check_indices(call, x, x.index); }
inline void check(const Call& call, const tensor::Scatter& x) { check_indices(call, x, x.index); }

inline void check(const Call&, const tensor::Sort& x) {
  if (x.count > x.cols) refuse("sort: more elements are wanted than a row has.");
}

inline void check(const Call&, const tensor::LinearGrad& x) {
  if (x.activation == tensor::Activation::None) refuse("linearGrad: there is no activation.");
}

inline void check_window(const tensor::Window& w) {
  for (const size_t size : {w.height, w.width, w.out_height, w.out_width, w.kernel_height, w.kernel_width, w.stride_y,
                            w.stride_x, w.dilation_y, w.dilation_x}) {
    if (size == 0) refuse("window: a size is 0.");
  }
}
inline void check_conv(const tensor::ConvSizes& x) {
  check_window(x.window);
  if (x.groups == 0 || x.in_channels == 0 || x.out_channels == 0) refuse("conv2d: there are no channels.");
}
inline void check(const Call&, const tensor::Conv2d& x) { check_conv(x); }
inline void check(const Call&, const tensor::Conv2dGradInput& x) { check_conv(x); }
inline void check(const Call&, const tensor::Conv2dGradWeight& x) { check_conv(x); }
inline void check(const Call&, const tensor::MaxPool& x) { check_window(x.window); }

/// Checks bins in host memory. Bins on a device are not read; the op has made them.
inline void check_bins(const Call& call, const tensor::PoolSizes& x, const int64_t* bins) {
  if (!call.is_on_host()) return;
  for (size_t i = 0; i < x.out_height + x.out_width; i++) {
    const int64_t begin = bins[3 * i], end = bins[3 * i + 1];
    const size_t size = i < x.out_height ? x.height : x.width;
    if (begin < 0 || (begin<end&& static_cast<size_t>(end)> size)) refuse("avgPool: a bin lies outside.");
  }
}
inline void check(const Call& call, const tensor::AvgPool& x) { check_bins(call, x, x.bins); }
inline void check(const Call& call, const tensor::AvgPoolGrad& x) { check_bins(call, x, x.bins); }

inline void check(const Call&, const tensor::Norm& x) {
  if ((x.addend == nullptr) != (x.sum == nullptr)) refuse("norm: an addend comes without a sum, or a sum without it.");
}

inline void check_probability(double p) {
  if (!(p >= 0 && p < 1)) refuse("dropout: the probability is not in [0, 1).");
}
inline void check(const Call&, const tensor::Attention& x) { check_probability(x.dropout); }
inline void check(const Call&, const tensor::AttentionGrad& x) { check_probability(x.dropout); }
inline void check(const Call&, const tensor::Dropout& x) { check_probability(x.p); }

inline void check(const Call&, const tensor::Random& x) {
  const bool is_integer = x.kind == tensor::RandomKind::Integers || x.kind == tensor::RandomKind::Bits;
  if (x.dtype != (is_integer ? DType::Int64 : DType::Float32)) refuse("random: the output has another dtype.");
  if (is_integer && !(x.high - x.low >= 0 && x.high - x.low <= 0x1p32)) refuse("random: bad range.");
}

}  // namespace ringwise::node
