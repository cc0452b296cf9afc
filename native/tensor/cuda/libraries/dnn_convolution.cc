// Convolutions by cuDNN.
#include <algorithm>

#include "tensor/cuda/launch/kernels.h"
#include "tensor/cuda/libraries/cublas_lt.h"
#include "tensor/cuda/libraries/dnn_kernels.h"
#include "tensor/cuda/libraries/dnn_plans.h"

namespace ringwise::tensor::cuda {

namespace {

using Dims = std::vector<int64_t>;

int64_t wide(size_t size) { return static_cast<int64_t>(size); }

/// Describes dense planes, ordered by image and then channel.
DnnTensor planes(int64_t id, DType dtype, size_t images, size_t channels, size_t height, size_t width,
                 int64_t alignment) {
  const size_t area = height * width;
  return {id,
          dnn_type(dtype),
          {wide(images), wide(channels), wide(height), wide(width)},
          {wide(channels * area), wide(area), wide(width), 1},
          alignment};
}

/// Returns the padding after the end that the last window needs; 0 if it ends inside.
int64_t behind(size_t out, size_t stride, size_t kernel, size_t dilation, size_t before, size_t size) {
  return std::max<int64_t>(0, wide((out - 1) * stride + (kernel - 1) * dilation + 1) - wide(size + before));
}

DnnPlans::Key key_of(Convolution kind, DType dtype, const ConvSizes& s, const int64_t (&alignments)[3],
                     DnnExactness exactness) {
  const Window& w = s.window;
  DnnPlans::Key key{0, static_cast<int64_t>(kind), static_cast<int64_t>(dtype), exactness.tensor_cores};
  for (const size_t size :
       {s.batch, s.groups, s.in_channels, s.out_channels, w.height, w.width, w.out_height, w.out_width, w.kernel_height,
        w.kernel_width, w.stride_y, w.stride_x, w.dilation_y, w.dilation_x, w.pad_top, w.pad_left}) {
    key.push_back(wide(size));
  }
  key.insert(key.end(), alignments, alignments + 3);
  return key;
}

/// Returns the number of elements of the operand that a convolution computes.
size_t result_count(Convolution kind, const ConvSizes& s) {
  const Window& w = s.window;
  switch (kind) {
    case Convolution::GradInput: return s.batch * s.groups * s.in_channels * w.height * w.width;
    case Convolution::GradWeight: return s.groups * s.out_channels * s.in_channels * w.kernel_height * w.kernel_width;
    default: return s.batch * s.groups * s.out_channels * w.out_height * w.out_width;
  }
}

/// Starts to[i] += from[i].
void add(DType dtype, void* to, void* from, size_t count) {
  Walk walk;
  walk.rank = 1;
  walk.operands = 3;
  walk.shape[0] = count;
  for (int i = 0; i < 3; i++) {
    walk.operand[i].data = static_cast<char*>(i == 2 ? from : to);
    walk.operand[i].dtype = dtype;
    walk.operand[i].strides[0] = 1;
  }
  map({MapOp::Add, dtype, walk});
}

}  // namespace

DnnGraph convolution_graph(Convolution kind, DType dtype, const ConvSizes& s, const int64_t (&alignments)[3]) {
  const Window& w = s.window;
  const size_t in = s.groups * s.in_channels, out = s.groups * s.out_channels;
  DnnGraph graph;
  graph.convolve(kind, planes(1, dtype, s.batch, in, w.height, w.width, alignments[0]),
                 planes(2, dtype, out, s.in_channels, w.kernel_height, w.kernel_width, alignments[1]),
                 planes(3, dtype, s.batch, out, w.out_height, w.out_width, alignments[2]),
                 {dtype == DType::Float64 ? dnn::DATA_DOUBLE : dnn::DATA_FLOAT,
                  {wide(w.stride_y), wide(w.stride_x)},
                  {wide(w.dilation_y), wide(w.dilation_x)},
                  {wide(w.pad_top), wide(w.pad_left)},
                  {behind(w.out_height, w.stride_y, w.kernel_height, w.dilation_y, w.pad_top, w.height),
                   behind(w.out_width, w.stride_x, w.kernel_width, w.dilation_x, w.pad_left, w.width)}});
  return graph;
}

bool convolve_by_library(Convolution kind, DType dtype, void* x, void* weight, void* y, const ConvSizes& sizes,
                         bool accumulate) {
  if (sizes.batch == 0) return false;
  Device& device = current_device();
  DnnPlans* plans = DnnPlans::of(device);
  if (!plans) return false;
  void* bindings[] = {x, weight, y};
  void*& result = bindings[kind == Convolution::GradInput ? 0 : kind == Convolution::GradWeight ? 1 : 2];
  void* const to = result;
  const size_t count = result_count(kind, sizes);
  // Few engines can accumulate, so a separate kernel adds the result.
  if (accumulate) result = device.allocate(count * byte_size(dtype));
  bool is_done = false;
  try {
    const int64_t alignments[] = {dnn_alignment(bindings[0]), dnn_alignment(bindings[1]), dnn_alignment(bindings[2])};
    const DnnExactness exactness{dtype != DType::Float32 || allows_tf32()};
    is_done = plans->run(device, key_of(kind, dtype, sizes, alignments, exactness), exactness,
                         [&] { return convolution_graph(kind, dtype, sizes, alignments); },
                         {{1, bindings[0]}, {2, bindings[1]}, {3, bindings[2]}});
    if (is_done && accumulate) add(dtype, to, result, count);
  } catch (...) {
    if (accumulate) device.free(result);
    throw;
  }
  if (accumulate) device.free(result);
  return is_done;
}

}  // namespace ringwise::tensor::cuda
