// Operations of cuDNN put together and planned. A graph is written down once for each shape; the plan that the library
// makes of it takes pointers. What the library refuses while it is described or planned is thrown as DnnRefusal, and
// whoever asked computes without it.
#pragma once

#include <cstdint>
#include <map>
#include <stdexcept>
#include <utility>
#include <vector>

#include "tensor/cuda/libraries/cudnn.h"

namespace ringwise::tensor::cuda {

struct DnnRefusal : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A descriptor of the library.
class DnnObject {
 public:
  explicit DnnObject(int kind);
  ~DnnObject();
  DnnObject(DnnObject&& other) noexcept : descriptor_(std::exchange(other.descriptor_, nullptr)) {}
  DnnObject& operator=(DnnObject&&) = delete;

  /// Values in the library's own form of this type.
  void set_values(int attribute, int type, int64_t count, const void* values);
  void set_int(int attribute, int64_t value) { set_values(attribute, dnn::TYPE_INT64, 1, &value); }
  void set_ints(int attribute, const std::vector<int64_t>& values);
  /// An enumeration.
  void set_name(int attribute, int type, int value) { set_values(attribute, type, 1, &value); }
  void set_flag(int attribute, bool value) { set_values(attribute, dnn::TYPE_BOOLEAN, 1, &value); }
  void set_object(int attribute, const DnnObject& object) {
    set_values(attribute, dnn::TYPE_BACKEND_DESCRIPTOR, 1, &object.descriptor_);
  }
  /// Returns how many there are, and writes up to `most`.
  int64_t get(int attribute, int type, int64_t most, void* values) const;
  void finish();
  DnnDescriptor get() const { return descriptor_; }

 private:
  DnnDescriptor descriptor_ = nullptr;
};

/// Where the elements of a tensor lie; `id` names it within its graph.
struct DnnTensor {
  int64_t id;
  int type;  // dnn::DATA_…
  std::vector<int64_t> dims, strides;
  int64_t alignment = 16;
  bool is_virtual = false;   // exists within the graph alone
  bool is_by_value = false;  // one number of the host
};

/// How results may differ from those of exact arithmetic of the stored type.
struct DnnExactness {
  bool tensor_cores;  // float32: those round factors to TF32
};

/// An operation graph that can be run. One thread at a time.
class DnnPlan {
 public:
  size_t workspace_bytes() const { return workspace_bytes_; }
  /// `bindings`: the memory of each tensor that is not virtual, on the device (by value: on the host). Throws
  /// std::runtime_error.
  void run(DnnHandle handle, Stream stream, const std::vector<std::pair<int64_t, void*>>& bindings,
           void* workspace) const;

 private:
  friend class DnnGraph;
  explicit DnnPlan(DnnObject plan);
  DnnObject plan_;
  size_t workspace_bytes_;
};

enum class Convolution { Forward, GradInput, GradWeight };
struct DnnWindow {
  int compute;  // dnn::DATA_…
  std::vector<int64_t> strides, dilations, before, after;
};

class DnnGraph {
 public:
  /// The three tensors by what they are in the forward direction; `kind` says which one is computed.
  void convolve(Convolution kind, const DnnTensor& x, const DnnTensor& weight, const DnnTensor& y,
                const DnnWindow& window);
  /// y = op(x, b, t), in float32. What an operation does not have is null. `axis`: of GEN_INDEX.
  void map(int mode, const DnnTensor& y, const DnnTensor& x, const DnnTensor* b = nullptr, const DnnTensor* t = nullptr,
           int64_t axis = -1);
  /// c = a · b over the last two dimensions, in float32.
  void multiply(const DnnTensor& c, const DnnTensor& a, const DnnTensor& b);
  /// Over the dimensions that are 1 in y, in float32.
  void reduce(int op, const DnnTensor& y, const DnnTensor& x);
  /// The memory of x seen in another way.
  void reshape(const DnnTensor& y, const DnnTensor& x);

  /// The best plan whose results are the same bits in every run. One of `handle` and `device` (the properties of a
  /// device that may not be here) is not null.
  DnnPlan plan(DnnHandle handle, const DnnObject* device, DnnExactness exactness) const;

 private:
  /// The descriptor that all operations on this tensor share.
  const DnnObject& tensor(const DnnTensor& x);

  std::map<int64_t, DnnObject> tensors_;
  std::vector<DnnObject> operations_;
};

}  // namespace ringwise::tensor::cuda
