#include "tensor/cuda/libraries/cudnn_graph.h"

#include <array>
#include <cstring>
#include <string>

#include "tensor/cuda/memory/caching_allocator.h"

namespace ringwise::tensor::cuda {

namespace {

void require(int status, const char* what) {
  if (status != 0)
    throw DnnRefusal(std::string("cuDNN: ") + what + " reported status " + std::to_string(status) + " (" +
                     cudnn().library.path() + ").");
}

DnnObject tensor_of(const DnnTensor& x) {
  DnnObject object(dnn::BACKEND_TENSOR_DESCRIPTOR);
  object.set_int(dnn::ATTR_TENSOR_UNIQUE_ID, x.id);
  object.set_name(dnn::ATTR_TENSOR_DATA_TYPE, dnn::TYPE_DATA_TYPE, x.type);
  object.set_ints(dnn::ATTR_TENSOR_DIMENSIONS, x.dims);
  object.set_ints(dnn::ATTR_TENSOR_STRIDES, x.strides);
  object.set_int(dnn::ATTR_TENSOR_BYTE_ALIGNMENT, x.alignment);
  if (x.is_virtual) object.set_flag(dnn::ATTR_TENSOR_IS_VIRTUAL, true);
  if (x.is_by_value) object.set_flag(dnn::ATTR_TENSOR_IS_BY_VALUE, true);
  object.finish();
  return object;
}

/// cuDNN's attribute numbers for the fields of a convolution.
struct ConvolutionNames {
  int operation, window, x, weight, y, alpha, beta;
};
ConvolutionNames names_of(Convolution kind) {
  using namespace dnn;
  switch (kind) {
    case Convolution::GradInput:
      return {BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
              ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
              ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
              ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
              ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
              ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
    case Convolution::GradWeight:
      return {BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
              ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
              ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
              ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
              ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
              ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
              ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
    default:
      return {BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
              ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
              ATTR_OPERATION_CONVOLUTION_FORWARD_X,
              ATTR_OPERATION_CONVOLUTION_FORWARD_W,
              ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
              ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
              ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
  }
}

void set_number(DnnObject& object, int attribute, int compute, double value) {
  const auto narrow = static_cast<float>(value);
  if (compute == dnn::DATA_DOUBLE)
    object.set_values(attribute, dnn::TYPE_DOUBLE, 1, &value);
  else
    object.set_values(attribute, dnn::TYPE_FLOAT, 1, &narrow);
}

/// Returns whether results of this engine have the requested exactness.
bool is_allowed(const DnnObject& configuration, DnnExactness exactness) {
  const DnnObject engine(dnn::BACKEND_ENGINE_DESCRIPTOR);
  DnnDescriptor into = engine.get();
  configuration.get(dnn::ATTR_ENGINECFG_ENGINE, dnn::TYPE_BACKEND_DESCRIPTOR, 1, &into);
  std::array<int, 16> notes{};
  const int64_t count =
      engine.get(dnn::ATTR_ENGINE_NUMERICAL_NOTE, dnn::TYPE_NUMERICAL_NOTE, notes.size(), notes.data());
  for (int64_t i = 0; i < count; i++) {
    switch (notes[static_cast<size_t>(i)]) {
      case dnn::NUMERICAL_NOTE_NONDETERMINISTIC:
      case dnn::NUMERICAL_NOTE_DOWN_CONVERT_INPUTS:
      case dnn::NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION: return false;
      case dnn::NUMERICAL_NOTE_TENSOR_CORE:
        if (!exactness.tensor_cores) return false;
        break;
      default: break;
    }
  }
  return true;
}

/// Returns the engine configurations that cuDNN proposes for a graph, best first.
std::vector<DnnObject> proposals(const DnnObject& graph, int mode, const DnnObject* device) {
  DnnObject heuristics(dnn::BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristics.set_object(dnn::ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
  heuristics.set_name(dnn::ATTR_ENGINEHEUR_MODE, dnn::TYPE_HEUR_MODE, mode);
  if (device) heuristics.set_object(dnn::ATTR_ENGINEHEUR_DEVICEPROP, *device);
  heuristics.finish();
  const int64_t count = heuristics.get(dnn::ATTR_ENGINEHEUR_RESULTS, dnn::TYPE_BACKEND_DESCRIPTOR, 0, nullptr);
  std::vector<DnnObject> found;
  std::vector<DnnDescriptor> into;
  for (int64_t i = 0; i < count; i++) into.push_back(found.emplace_back(dnn::BACKEND_ENGINECFG_DESCRIPTOR).get());
  if (count > 0) heuristics.get(dnn::ATTR_ENGINEHEUR_RESULTS, dnn::TYPE_BACKEND_DESCRIPTOR, count, into.data());
  return found;
}

}  // namespace

DnnObject::DnnObject(int kind) {
  require(cudnn().cudnnBackendCreateDescriptor(kind, &descriptor_), "cudnnBackendCreateDescriptor");
}

DnnObject::~DnnObject() {
  if (descriptor_) cudnn().cudnnBackendDestroyDescriptor(descriptor_);
}

void DnnObject::set_values(int attribute, int type, int64_t count, const void* values) {
  require(cudnn().cudnnBackendSetAttribute(descriptor_, attribute, type, count, values), "cudnnBackendSetAttribute");
}

void DnnObject::set_ints(int attribute, const std::vector<int64_t>& values) {
  set_values(attribute, dnn::TYPE_INT64, static_cast<int64_t>(values.size()), values.data());
}

int64_t DnnObject::get(int attribute, int type, int64_t most, void* values) const {
  int64_t count = 0;
  require(cudnn().cudnnBackendGetAttribute(descriptor_, attribute, type, most, &count, values),
          "cudnnBackendGetAttribute");
  return count;
}

void DnnObject::finish() { require(cudnn().cudnnBackendFinalize(descriptor_), "cudnnBackendFinalize"); }

const DnnObject& DnnGraph::tensor(const DnnTensor& x) {
  if (x.is_by_value) numbers_[x.id] = x.type == dnn::DATA_DOUBLE ? 8 : 4;
  const auto found = tensors_.find(x.id);
  return found != tensors_.end() ? found->second : tensors_.emplace(x.id, tensor_of(x)).first->second;
}

void DnnGraph::convolve(Convolution kind, const DnnTensor& x, const DnnTensor& weight, const DnnTensor& y,
                        const DnnWindow& window) {
  DnnObject sliding(dnn::BACKEND_CONVOLUTION_DESCRIPTOR);
  sliding.set_int(dnn::ATTR_CONVOLUTION_SPATIAL_DIMS, static_cast<int64_t>(window.strides.size()));
  sliding.set_name(dnn::ATTR_CONVOLUTION_COMP_TYPE, dnn::TYPE_DATA_TYPE, window.compute);
  sliding.set_name(dnn::ATTR_CONVOLUTION_CONV_MODE, dnn::TYPE_CONVOLUTION_MODE, dnn::CROSS_CORRELATION);
  sliding.set_ints(dnn::ATTR_CONVOLUTION_FILTER_STRIDES, window.strides);
  sliding.set_ints(dnn::ATTR_CONVOLUTION_DILATIONS, window.dilations);
  sliding.set_ints(dnn::ATTR_CONVOLUTION_PRE_PADDINGS, window.before);
  sliding.set_ints(dnn::ATTR_CONVOLUTION_POST_PADDINGS, window.after);
  sliding.finish();
  const ConvolutionNames names = names_of(kind);
  DnnObject operation(names.operation);
  operation.set_object(names.x, tensor(x));
  operation.set_object(names.weight, tensor(weight));
  operation.set_object(names.y, tensor(y));
  operation.set_object(names.window, sliding);
  set_number(operation, names.alpha, window.compute, 1);
  set_number(operation, names.beta, window.compute, 0);
  operation.finish();
  operations_.push_back(std::move(operation));
}

void DnnGraph::map(int mode, const DnnTensor& y, const DnnTensor& x, const DnnTensor* b, const DnnTensor* t,
                   int64_t axis) {
  DnnObject what(dnn::BACKEND_POINTWISE_DESCRIPTOR);
  what.set_name(dnn::ATTR_POINTWISE_MODE, dnn::TYPE_POINTWISE_MODE, mode);
  what.set_name(dnn::ATTR_POINTWISE_MATH_PREC, dnn::TYPE_DATA_TYPE, dnn::DATA_FLOAT);
  if (axis >= 0) what.set_int(dnn::ATTR_POINTWISE_AXIS, axis);
  what.finish();
  DnnObject operation(dnn::BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  operation.set_object(dnn::ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, what);
  operation.set_object(dnn::ATTR_OPERATION_POINTWISE_XDESC, tensor(x));
  if (b) operation.set_object(dnn::ATTR_OPERATION_POINTWISE_BDESC, tensor(*b));
  if (t) operation.set_object(dnn::ATTR_OPERATION_POINTWISE_TDESC, tensor(*t));
  operation.set_object(dnn::ATTR_OPERATION_POINTWISE_YDESC, tensor(y));
  operation.finish();
  operations_.push_back(std::move(operation));
}

void DnnGraph::multiply(const DnnTensor& c, const DnnTensor& a, const DnnTensor& b) {
  DnnObject what(dnn::BACKEND_MATMUL_DESCRIPTOR);
  what.set_name(dnn::ATTR_MATMUL_COMP_TYPE, dnn::TYPE_DATA_TYPE, dnn::DATA_FLOAT);
  what.finish();
  DnnObject operation(dnn::BACKEND_OPERATION_MATMUL_DESCRIPTOR);
  operation.set_object(dnn::ATTR_OPERATION_MATMUL_ADESC, tensor(a));
  operation.set_object(dnn::ATTR_OPERATION_MATMUL_BDESC, tensor(b));
  operation.set_object(dnn::ATTR_OPERATION_MATMUL_CDESC, tensor(c));
  operation.set_object(dnn::ATTR_OPERATION_MATMUL_DESC, what);
  operation.finish();
  operations_.push_back(std::move(operation));
}

void DnnGraph::reduce(int op, const DnnTensor& y, const DnnTensor& x) {
  DnnObject what(dnn::BACKEND_REDUCTION_DESCRIPTOR);
  what.set_name(dnn::ATTR_REDUCTION_OPERATOR, dnn::TYPE_REDUCTION_OPERATOR_TYPE, op);
  what.set_name(dnn::ATTR_REDUCTION_COMP_TYPE, dnn::TYPE_DATA_TYPE, dnn::DATA_FLOAT);
  what.finish();
  DnnObject operation(dnn::BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
  operation.set_object(dnn::ATTR_OPERATION_REDUCTION_XDESC, tensor(x));
  operation.set_object(dnn::ATTR_OPERATION_REDUCTION_YDESC, tensor(y));
  operation.set_object(dnn::ATTR_OPERATION_REDUCTION_DESC, what);
  operation.finish();
  operations_.push_back(std::move(operation));
}

void DnnGraph::reshape(const DnnTensor& y, const DnnTensor& x) {
  DnnObject operation(dnn::BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
  operation.set_object(dnn::ATTR_OPERATION_RESHAPE_XDESC, tensor(x));
  operation.set_object(dnn::ATTR_OPERATION_RESHAPE_YDESC, tensor(y));
  operation.finish();
  operations_.push_back(std::move(operation));
}

DnnPlan DnnGraph::plan(DnnHandle handle, const DnnObject* device, DnnExactness exactness) const {
  std::vector<DnnDescriptor> descriptors;
  for (const DnnObject& operation : operations_) descriptors.push_back(operation.get());
  DnnObject graph(dnn::BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  graph.set_values(dnn::ATTR_OPERATIONGRAPH_OPS, dnn::TYPE_BACKEND_DESCRIPTOR, static_cast<int64_t>(descriptors.size()),
                   descriptors.data());
  if (handle) graph.set_values(dnn::ATTR_OPERATIONGRAPH_HANDLE, dnn::TYPE_HANDLE, 1, &handle);
  graph.finish();
  std::string last = "cuDNN: no engine gives what was asked for.";
  for (const int mode : {dnn::HEUR_MODE_A, dnn::HEUR_MODE_FALLBACK}) {
    for (const DnnObject& proposal : proposals(graph, mode, device)) {
      try {
        if (!is_allowed(proposal, exactness)) continue;
        DnnObject plan(dnn::BACKEND_EXECUTION_PLAN_DESCRIPTOR);
        plan.set_object(dnn::ATTR_EXECUTION_PLAN_ENGINE_CONFIG, proposal);
        if (handle) plan.set_values(dnn::ATTR_EXECUTION_PLAN_HANDLE, dnn::TYPE_HANDLE, 1, &handle);
        if (device) plan.set_object(dnn::ATTR_EXECUTION_PLAN_DEVICEPROP, *device);
        plan.finish();
        DnnPlan made(std::move(plan), numbers_);
        if (made.workspace_bytes() <= kMostWorkspace) return made;
        last = "cuDNN: the plans need more than " + megabytes(kMostWorkspace) + " of workspace.";
      } catch (const DnnRefusal& refusal) {
        last = refusal.what();
      }
    }
  }
  throw DnnRefusal(last);
}

DnnPlan::DnnPlan(DnnObject plan, std::map<int64_t, size_t> numbers)
    : plan_(std::move(plan)), numbers_(std::move(numbers)) {
  int64_t bytes = 0;
  plan_.get(dnn::ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, dnn::TYPE_INT64, 1, &bytes);
  workspace_bytes_ = static_cast<size_t>(bytes);
}

/// Returns the variant pack with these addresses, which an earlier run may have made. The numbers of tensors by value
/// are part of the key, because the library does not say when it reads them.
const DnnObject& DnnPlan::pack(const Bindings& bindings, void* workspace) {
  PackKey key{bindings, {reinterpret_cast<intptr_t>(workspace)}};
  for (const auto& [id, pointer] : bindings) {
    const auto number = numbers_.find(id);
    if (number == numbers_.end()) continue;
    int64_t bits = 0;
    std::memcpy(&bits, pointer, number->second);
    key.second.push_back(bits);
  }
  if (const auto found = packs_.find(key); found != packs_.end()) return found->second;
  std::vector<int64_t> ids;
  std::vector<void*> pointers;
  for (const auto& [id, pointer] : bindings) {
    ids.push_back(id);
    pointers.push_back(pointer);
  }
  DnnObject made(dnn::BACKEND_VARIANT_PACK_DESCRIPTOR);
  made.set_ints(dnn::ATTR_VARIANT_PACK_UNIQUE_IDS, ids);
  made.set_values(dnn::ATTR_VARIANT_PACK_DATA_POINTERS, dnn::TYPE_VOID_PTR, static_cast<int64_t>(pointers.size()),
                  pointers.data());
  made.set_values(dnn::ATTR_VARIANT_PACK_WORKSPACE, dnn::TYPE_VOID_PTR, 1, &workspace);
  made.finish();
  if (packs_.size() == kMostPacks) packs_.clear();
  return packs_.emplace(std::move(key), std::move(made)).first->second;
}

void DnnPlan::run(DnnHandle handle, Stream stream, const Bindings& bindings, void* workspace) {
  const DnnObject& addresses = pack(bindings, workspace);
  require(cudnn().cudnnSetStream(handle, stream), "cudnnSetStream");
  require(cudnn().cudnnBackendExecute(handle, plan_.get(), addresses.get()), "cudnnBackendExecute");
}

}  // namespace ringwise::tensor::cuda
