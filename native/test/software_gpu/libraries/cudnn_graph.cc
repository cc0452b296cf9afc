// Computes operation graphs of cuDNN in double, one operation after another. Virtual tensors get temporary memory while
// the graph runs; elements are rounded to the type of the tensor to which they are written.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/half.h"
#include "test/software_gpu/libraries/cudnn.h"

namespace ringwise::software_gpu {

namespace {

namespace dnn = tensor::cuda::dnn;
using Dims = std::vector<int64_t>;

size_t bytes_of(int type) {
  switch (type) {
    case dnn::DATA_DOUBLE: return 8;
    case dnn::DATA_HALF:
    case dnn::DATA_BFLOAT16: return 2;
    case dnn::DATA_BOOLEAN: return 1;
    default: return 4;
  }
}

/// A tensor in memory.
struct Array {
  int type;
  Dims dims, strides;
  char* data;

  /// Returns the address of an element. Dimensions of size 1 are broadcast.
  char* at(const Dims& index) const {
    int64_t offset = 0;
    for (size_t d = 0; d < dims.size(); d++) offset += dims[d] == 1 ? 0 : index[d] * strides[d];
    return data + static_cast<size_t>(offset) * bytes_of(type);
  }
  double get(const Dims& index) const {
    const char* from = at(index);
    switch (type) {
      case dnn::DATA_DOUBLE: return *reinterpret_cast<const double*>(from);
      case dnn::DATA_HALF: return static_cast<double>(to_float(*reinterpret_cast<const Half*>(from)));
      case dnn::DATA_BFLOAT16: return static_cast<double>(to_float(*reinterpret_cast<const BFloat*>(from)));
      case dnn::DATA_BOOLEAN: return *from;
      case dnn::DATA_INT32: return *reinterpret_cast<const int32_t*>(from);
      default: return static_cast<double>(*reinterpret_cast<const float*>(from));
    }
  }
  void set(const Dims& index, double value) const {
    char* to = at(index);
    switch (type) {
      case dnn::DATA_DOUBLE: *reinterpret_cast<double*>(to) = value; break;
      case dnn::DATA_HALF: *reinterpret_cast<Half*>(to) = to_half(static_cast<float>(value)); break;
      case dnn::DATA_BFLOAT16: *reinterpret_cast<BFloat*>(to) = to_bfloat(static_cast<float>(value)); break;
      case dnn::DATA_BOOLEAN: *to = value != 0; break;
      case dnn::DATA_INT32: *reinterpret_cast<int32_t*>(to) = static_cast<int32_t>(value); break;
      default: *reinterpret_cast<float*>(to) = static_cast<float>(value);
    }
  }
};

/// Calls body(index) for every index of a shape.
template <class Body>
void for_each(const Dims& dims, Body body) {
  if (std::find(dims.begin(), dims.end(), 0) != dims.end()) return;
  Dims index(dims.size(), 0);
  for (;;) {
    body(index);
    size_t d = 0;
    while (d < dims.size() && ++index[d] == dims[d]) index[d++] = 0;
    if (d == dims.size()) return;
  }
}

class Run {
 public:
  explicit Run(const std::map<int64_t, void*>& bindings) : bindings_(bindings) {}

  void operation(const DnnDescriptor& x) {
    switch (x.kind) {
      case dnn::BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
        return convolve(x, dnn::ATTR_OPERATION_CONVOLUTION_FORWARD_X, dnn::ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                        dnn::ATTR_OPERATION_CONVOLUTION_FORWARD_Y, dnn::ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                        dnn::ATTR_OPERATION_CONVOLUTION_FORWARD_Y);
      case dnn::BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
        return convolve(x, dnn::ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, dnn::ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                        dnn::ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, dnn::ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                        dnn::ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX);
      case dnn::BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
        return convolve(x, dnn::ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, dnn::ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
                        dnn::ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
                        dnn::ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
                        dnn::ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW);
      case dnn::BACKEND_OPERATION_POINTWISE_DESCRIPTOR: return map(x);
      case dnn::BACKEND_OPERATION_MATMUL_DESCRIPTOR: return multiply(x);
      case dnn::BACKEND_OPERATION_REDUCTION_DESCRIPTOR: return reduce(x);
      default: return reshape(x);
    }
  }

 private:
  /// Returns the tensor in an attribute of an operation.
  Array array(const DnnDescriptor& operation, int attribute) {
    const DnnDescriptor& x = operation.object(attribute);
    Array array{x.value<int>(dnn::ATTR_TENSOR_DATA_TYPE), x.list<int64_t>(dnn::ATTR_TENSOR_DIMENSIONS),
                x.list<int64_t>(dnn::ATTR_TENSOR_STRIDES), nullptr};
    const auto id = x.value<int64_t>(dnn::ATTR_TENSOR_UNIQUE_ID);
    if (const auto found = bindings_.find(id); found != bindings_.end()) {
      array.data = static_cast<char*>(found->second);
      return array;
    }
    int64_t last = 0;
    for (size_t d = 0; d < array.dims.size(); d++) last += (array.dims[d] - 1) * array.strides[d];
    std::vector<double>& memory = own_[id];
    if (memory.empty()) memory.resize(static_cast<size_t>(last + 1));
    array.data = reinterpret_cast<char*>(memory.data());
    return array;
  }

  /// Adds every product of a convolution to its element of the tensor `result`.
  void convolve(const DnnDescriptor& operation, int x_at, int weight_at, int y_at, int window_at, int result) {
    const DnnDescriptor& window = operation.object(window_at);
    const auto steps = window.list<int64_t>(dnn::ATTR_CONVOLUTION_FILTER_STRIDES),
               before = window.list<int64_t>(dnn::ATTR_CONVOLUTION_PRE_PADDINGS),
               dilations = window.list<int64_t>(dnn::ATTR_CONVOLUTION_DILATIONS);
    const Array x = array(operation, x_at), weight = array(operation, weight_at), y = array(operation, y_at);
    const Array& to = result == x_at ? x : result == weight_at ? weight : y;
    std::map<Dims, double> sums;
    for_each(to.dims, [&](const Dims& index) { sums[index] = 0; });
    const int64_t group = y.dims[1] / (x.dims[1] / weight.dims[1]);  // output channels of one group
    for_each(y.dims, [&](const Dims& at) {
      for_each({weight.dims[1], weight.dims[2], weight.dims[3]}, [&](const Dims& tap) {
        const Dims pixel{at[0], at[1] / group * weight.dims[1] + tap[0],
                         at[2] * steps[0] - before[0] + tap[1] * dilations[0],
                         at[3] * steps[1] - before[1] + tap[2] * dilations[1]};
        if (pixel[2] < 0 || pixel[3] < 0 || pixel[2] >= x.dims[2] || pixel[3] >= x.dims[3]) return;
        const Dims element{at[1], tap[0], tap[1], tap[2]};
        if (result == x_at)
          sums[pixel] += weight.get(element) * y.get(at);
        else if (result == weight_at)
          sums[element] += x.get(pixel) * y.get(at);
        else
          sums[at] += x.get(pixel) * weight.get(element);
      });
    });
    for (const auto& [index, sum] : sums) to.set(index, sum);
  }

  void map(const DnnDescriptor& operation) {
    const DnnDescriptor& what = operation.object(dnn::ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
    const int mode = what.value<int>(dnn::ATTR_POINTWISE_MODE);
    const Array y = array(operation, dnn::ATTR_OPERATION_POINTWISE_YDESC),
                x = array(operation, dnn::ATTR_OPERATION_POINTWISE_XDESC);
    const bool has_b = operation.has(dnn::ATTR_OPERATION_POINTWISE_BDESC),
               has_t = operation.has(dnn::ATTR_OPERATION_POINTWISE_TDESC);
    const Array b = has_b ? array(operation, dnn::ATTR_OPERATION_POINTWISE_BDESC) : x;
    const Array t = has_t ? array(operation, dnn::ATTR_OPERATION_POINTWISE_TDESC) : x;
    const size_t axis =
        mode == dnn::POINTWISE_GEN_INDEX ? static_cast<size_t>(what.value<int64_t>(dnn::ATTR_POINTWISE_AXIS)) : 0;
    for_each(y.dims, [&](const Dims& at) {
      const double u = x.get(at), v = b.get(at);
      const auto result = [&] {
        switch (mode) {
          case dnn::POINTWISE_ADD: return u + v;
          case dnn::POINTWISE_SUB: return u - v;
          case dnn::POINTWISE_MUL: return u * v;
          case dnn::POINTWISE_DIV: return u / v;
          case dnn::POINTWISE_EXP: return std::exp(u);
          case dnn::POINTWISE_LOG: return std::log(u);
          case dnn::POINTWISE_CMP_GE: return u >= v ? 1.0 : 0.0;
          case dnn::POINTWISE_GEN_INDEX: return static_cast<double>(at[axis]);
          case dnn::POINTWISE_BINARY_SELECT: return t.get(at) != 0 ? u : v;
          default: return u;
        }
      };
      y.set(at, result());
    });
  }

  void multiply(const DnnDescriptor& operation) {
    const Array a = array(operation, dnn::ATTR_OPERATION_MATMUL_ADESC),
                b = array(operation, dnn::ATTR_OPERATION_MATMUL_BDESC),
                c = array(operation, dnn::ATTR_OPERATION_MATMUL_CDESC);
    for_each(c.dims, [&](const Dims& at) {
      double sum = 0;
      Dims left = at, right = at;
      for (int64_t k = 0; k < a.dims[3]; k++) {
        left[3] = right[2] = k;
        sum += a.get(left) * b.get(right);
      }
      c.set(at, sum);
    });
  }

  /// Sums or finds the largest elements in the output itself, so each partial sum is rounded to the type of the output.
  void reduce(const DnnDescriptor& operation) {
    const int op = operation.object(dnn::ATTR_OPERATION_REDUCTION_DESC).value<int>(dnn::ATTR_REDUCTION_OPERATOR);
    const Array x = array(operation, dnn::ATTR_OPERATION_REDUCTION_XDESC),
                y = array(operation, dnn::ATTR_OPERATION_REDUCTION_YDESC);
    const bool is_max = op == dnn::REDUCE_TENSOR_MAX;
    for_each(y.dims, [&](const Dims& at) { y.set(at, is_max ? -std::numeric_limits<double>::infinity() : 0); });
    for_each(x.dims,
             [&](const Dims& at) { y.set(at, is_max ? std::max(y.get(at), x.get(at)) : y.get(at) + x.get(at)); });
  }

  /// Transposes rows and columns, the only reshape that this interpreter supports.
  void reshape(const DnnDescriptor& operation) {
    const Array x = array(operation, dnn::ATTR_OPERATION_RESHAPE_XDESC),
                y = array(operation, dnn::ATTR_OPERATION_RESHAPE_YDESC);
    for_each(y.dims, [&](const Dims& at) { y.set(at, x.get({at[0], at[1], at[3], at[2]})); });
  }

  const std::map<int64_t, void*>& bindings_;
  std::map<int64_t, std::vector<double>> own_;  // elements of virtual tensors; a double can hold every type
};

bool is_known(int kind) {
  for (const int each : {dnn::BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                         dnn::BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                         dnn::BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
                         dnn::BACKEND_OPERATION_POINTWISE_DESCRIPTOR, dnn::BACKEND_OPERATION_MATMUL_DESCRIPTOR,
                         dnn::BACKEND_OPERATION_REDUCTION_DESCRIPTOR, dnn::BACKEND_OPERATION_RESHAPE_DESCRIPTOR}) {
    if (kind == each) return true;
  }
  return false;
}

/// Returns whether the output of a forward convolution has the size that follows from the windows in the padded input;
/// true for all other operations.
bool fits(const DnnDescriptor& operation) {
  if (operation.kind != dnn::BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR) return true;
  const DnnDescriptor& window = operation.object(dnn::ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC);
  const auto dims = [&](int attribute) {
    return operation.object(attribute).list<int64_t>(dnn::ATTR_TENSOR_DIMENSIONS);
  };
  const auto of = [&](int attribute, size_t d) { return window.list<int64_t>(attribute)[d]; };
  for (size_t d = 0; d < 2; d++) {
    const int64_t padded = dims(dnn::ATTR_OPERATION_CONVOLUTION_FORWARD_X)[d + 2] +
                           of(dnn::ATTR_CONVOLUTION_PRE_PADDINGS, d) + of(dnn::ATTR_CONVOLUTION_POST_PADDINGS, d);
    const int64_t reach =
        (dims(dnn::ATTR_OPERATION_CONVOLUTION_FORWARD_W)[d + 2] - 1) * of(dnn::ATTR_CONVOLUTION_DILATIONS, d) + 1;
    const int64_t count = (padded - reach) / of(dnn::ATTR_CONVOLUTION_FILTER_STRIDES, d) + 1;
    if (count != dims(dnn::ATTR_OPERATION_CONVOLUTION_FORWARD_Y)[d + 2]) return false;
  }
  return true;
}

}  // namespace

bool can_run(const DnnDescriptor& graph) {
  const auto& operations = graph.objects.at(dnn::ATTR_OPERATIONGRAPH_OPS);
  return std::all_of(operations.begin(), operations.end(),
                     [](const DnnDescriptor& each) { return is_known(each.kind) && fits(each); });
}

void run(const DnnDescriptor& graph, const std::map<int64_t, void*>& bindings) {
  Run all(bindings);
  for (const DnnDescriptor& operation : graph.objects.at(dnn::ATTR_OPERATIONGRAPH_OPS)) all.operation(operation);
}

}  // namespace ringwise::software_gpu
