// Builds and plans graphs of cuDNN operations. A graph is described once per shape; the plan that cuDNN makes from it
// takes pointers. If cuDNN refuses a graph, DnnRefusal is thrown, and the caller computes without cuDNN.
#pragma once

#include <cstdint>
#include <map>
#include <stdexcept>
#include <utility>
#include <vector>

#include "tensor/cuda/libraries/cudnn.h"

namespace ringwise::tensor::cuda {

/// A function of cuDNN reported an error, or no engine satisfies the caller.
struct DnnRefusal : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Owns a cuDNN descriptor.
class DnnObject {
 public:
  explicit DnnObject(int kind);
  ~DnnObject();
  DnnObject(DnnObject&& other) noexcept : descriptor_(std::exchange(other.descriptor_, nullptr)) {}
  DnnObject& operator=(DnnObject&&) = delete;

  /// Sets an attribute. `values` have cuDNN's representation of `type`.
  void set_values(int attribute, int type, int64_t count, const void* values);
  void set_int(int attribute, int64_t value) { set_values(attribute, dnn::TYPE_INT64, 1, &value); }
  void set_ints(int attribute, const std::vector<int64_t>& values);
  /// Sets an attribute whose type is an enumeration.
  void set_name(int attribute, int type, int value) { set_values(attribute, type, 1, &value); }
  void set_flag(int attribute, bool value) { set_values(attribute, dnn::TYPE_BOOLEAN, 1, &value); }
  void set_object(int attribute, const DnnObject& object) {
    set_values(attribute, dnn::TYPE_BACKEND_DESCRIPTOR, 1, &object.descriptor_);
  }
  /// Returns the number of values of an attribute, and writes up to `most` of them.
  int64_t get(int attribute, int type, int64_t most, void* values) const;
  /// Finalizes the descriptor, after which attributes can be read, and others can refer to it.
  void finish();
  DnnDescriptor get() const { return descriptor_; }

 private:
  DnnDescriptor descriptor_ = nullptr;
};

/// The layout of a tensor; `id` identifies it within its graph.
struct DnnTensor {
  int64_t id;
  int type;  // dnn::DATA_…
  std::vector<int64_t> dims, strides;
  int64_t alignment = 16;
  bool is_virtual = false;   // exists only inside the graph
  bool is_by_value = false;  // one number in host memory
};

/// Permitted differences from exact arithmetic in the stored type.
struct DnnExactness {
  bool tensor_cores;  // for float32, tensor cores round factors to TF32
};

/// An executable plan of a graph. Must be run by one thread at a time.
class DnnPlan {
 public:
  using Bindings = std::vector<std::pair<int64_t, void*>>;

  size_t workspace_bytes() const { return workspace_bytes_; }
  /// Runs the plan. `bindings` has the memory of each tensor that is not virtual: on the device, or on the host for
  /// tensors by value. Throws DnnRefusal. The plan must exist until the device has run it.
  void run(DnnHandle handle, Stream stream, const Bindings& bindings, void* workspace);

 private:
  friend class DnnGraph;
  /// Most variant packs that a plan keeps: more than the calls of one shape in a step, such as the layers of a model.
  static constexpr size_t kMostPacks = 64;
  /// The addresses in a variant pack with the ids of their tensors, and the numbers to which those by value point.
  using PackKey = std::pair<Bindings, std::vector<int64_t>>;

  DnnPlan(DnnObject plan, std::map<int64_t, size_t> numbers);
  const DnnObject& pack(const Bindings& bindings, void* workspace);

  DnnObject plan_;
  std::map<int64_t, size_t> numbers_;  // ids and bytes of the tensors by value
  // A training loop gets the same addresses in every step, so it makes no new packs after the first steps.
  std::map<PackKey, DnnObject> packs_;
  size_t workspace_bytes_;
};

enum class Convolution { Forward, GradInput, GradWeight };
/// The window of a convolution. `before` and `after` are paddings.
struct DnnWindow {
  int compute;  // dnn::DATA_…
  std::vector<int64_t> strides, dilations, before, after;
};

class DnnGraph {
 public:
  /// Adds a convolution. The tensors have their roles of the forward direction; `kind` tells which one is computed.
  void convolve(Convolution kind, const DnnTensor& x, const DnnTensor& weight, const DnnTensor& y,
                const DnnWindow& window);
  /// Adds y = op(x, b, t), in float32. Operands that the operation does not have are null. `axis` is for GEN_INDEX.
  void map(int mode, const DnnTensor& y, const DnnTensor& x, const DnnTensor* b = nullptr, const DnnTensor* t = nullptr,
           int64_t axis = -1);
  /// Adds c = a · b over the last two dimensions, in float32.
  void multiply(const DnnTensor& c, const DnnTensor& a, const DnnTensor& b);
  /// Adds a reduction over the dimensions that are 1 in y, in float32.
  void reduce(int op, const DnnTensor& y, const DnnTensor& x);
  /// Adds y as a view of x with another shape.
  void reshape(const DnnTensor& y, const DnnTensor& x);

  /// Returns the best plan whose results are bitwise equal in every run and whose workspace is not too large. One of
  /// `handle` and `device` (the properties of a device, which need not be in this machine) must not be null.
  DnnPlan plan(DnnHandle handle, const DnnObject* device, DnnExactness exactness) const;

 private:
  /// Most bytes of a plan's workspace. Larger ones, which some engines of convolutions ask for, would displace tensors.
  static constexpr size_t kMostWorkspace = size_t{1} << 30;

  /// Returns the descriptor that all operations on this tensor share.
  const DnnObject& tensor(const DnnTensor& x);

  std::map<int64_t, DnnObject> tensors_;
  std::map<int64_t, size_t> numbers_;  // ids and bytes of the tensors by value
  std::vector<DnnObject> operations_;
};

}  // namespace ringwise::tensor::cuda
