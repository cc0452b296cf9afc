// Stands in for cuDNN on the CPU (RINGWISE_LIBCUDNN): the functions of tensor/cuda/libraries/cudnn.h. Descriptors keep
// the attributes that are set, and cudnn_graph.cc interprets the graph of a plan. The first engine that is proposed
// declares that its results differ from run to run, and fails. Work fails if its plan has been destroyed before it
// runs.
#include "test/software_gpu/libraries/cudnn.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <map>
#include <set>

#include "test/software_gpu/streams.h"

#define EXPORT extern "C" __attribute__((visibility("default"))) int

namespace {

using namespace ringwise::software_gpu;
namespace dnn = ringwise::tensor::cuda::dnn;

constexpr int kSuccess = 0, kLaunchFailed = 719, kBadParameter = 2000, kNotSupported = 3000, kFailed = 5000;
constexpr int64_t kProposals = 2, kWorkspaceBytes = 4096;
std::atomic<int64_t> told_workspace = kWorkspaceBytes;
constexpr size_t kVersion = 92400;
std::atomic<size_t> told_version = kVersion;
std::atomic<int> failures = 0, packs = 0;

struct Handle {
  SoftwareStream* stream = nullptr;
};

size_t bytes_of(int type) {
  switch (type) {
    case dnn::TYPE_CHAR:
    case dnn::TYPE_BOOLEAN: return 1;
    case dnn::TYPE_HANDLE:
    case dnn::TYPE_INT64:
    case dnn::TYPE_DOUBLE:
    case dnn::TYPE_VOID_PTR: return 8;
    default: return 4;
  }
}

int get_ints(std::initializer_list<int64_t> values, int64_t most, int64_t* count, void* into) {
  *count = static_cast<int64_t>(values.size());
  std::copy_n(values.begin(), std::min(most, *count), static_cast<int64_t*>(into));
  return kSuccess;
}

/// Calls use(id, is_number) for every tensor that is not virtual; `is_number` tells whether it is a number in host
/// memory.
template <class Use>
void for_each_tensor(const DnnDescriptor& object, Use use) {
  if (object.kind == dnn::BACKEND_TENSOR_DESCRIPTOR && !object.values.contains(dnn::ATTR_TENSOR_IS_VIRTUAL)) {
    use(object.value<int64_t>(dnn::ATTR_TENSOR_UNIQUE_ID), object.values.contains(dnn::ATTR_TENSOR_IS_BY_VALUE));
  }
  for (const auto& [attribute, objects] : object.objects) {
    for (const DnnDescriptor& each : objects) for_each_tensor(each, use);
  }
}

}  // namespace

extern "C" __attribute__((visibility("default"))) size_t cudnnGetVersion() { return told_version; }
EXPORT cudnnCreate(Handle** handle) { return *handle = new Handle, kSuccess; }
EXPORT cudnnSetStream(Handle* handle, SoftwareStream* stream) { return handle->stream = stream, kSuccess; }
EXPORT cudnnBackendCreateDescriptor(int kind, DnnDescriptor** made) {
  *made = new DnnDescriptor;
  (*made)->life = std::make_shared<char>();
  if (kind == dnn::BACKEND_VARIANT_PACK_DESCRIPTOR) packs++;
  return (*made)->kind = kind, kSuccess;
}
EXPORT cudnnBackendDestroyDescriptor(DnnDescriptor* object) { return delete object, kSuccess; }

EXPORT cudnnBackendSetAttribute(DnnDescriptor* object, int attribute, int type, int64_t count, const void* values) {
  if (object->is_finished || count < 0) return kBadParameter;
  if (type == dnn::TYPE_BACKEND_DESCRIPTOR) {
    auto& into = object->objects[attribute];
    into.clear();
    for (int64_t i = 0; i < count; i++) {
      const DnnDescriptor* given = static_cast<DnnDescriptor* const*>(values)[i];
      if (!given->is_finished) return kBadParameter;
      into.push_back(*given);
    }
    return kSuccess;
  }
  const char* bytes = static_cast<const char*>(values);
  object->values[attribute].assign(bytes, bytes + static_cast<size_t>(count) * bytes_of(type));
  return kSuccess;
}

EXPORT cudnnBackendFinalize(DnnDescriptor* object) {
  if (object->is_finished) return kBadParameter;
  try {
    if (object->kind == dnn::BACKEND_OPERATIONGRAPH_DESCRIPTOR && !can_run(*object)) return kNotSupported;
  } catch (const std::exception&) {
    return kBadParameter;  // a required attribute is missing
  }
  return object->is_finished = true, kSuccess;
}

EXPORT cudnnBackendGetAttribute(const DnnDescriptor* object, int attribute, int, int64_t most, int64_t* count,
                                void* into) {
  switch (attribute) {
    case dnn::ATTR_ENGINEHEUR_RESULTS: {
      *count = kProposals;
      const bool is_fallback = object->value<int>(dnn::ATTR_ENGINEHEUR_MODE) == dnn::HEUR_MODE_FALLBACK;
      for (int i = 0; i < std::min(most, kProposals); i++) {
        DnnDescriptor& to = *static_cast<DnnDescriptor**>(into)[i];
        to.proposal = is_fallback ? 0 : i;
        to.objects[dnn::ATTR_ENGINEHEUR_OPERATION_GRAPH] = {object->object(dnn::ATTR_ENGINEHEUR_OPERATION_GRAPH)};
        to.is_finished = true;
      }
      return kSuccess;
    }
    case dnn::ATTR_ENGINECFG_ENGINE:
      return (*static_cast<DnnDescriptor**>(into))->proposal = object->proposal, kSuccess;
    case dnn::ATTR_ENGINE_NUMERICAL_NOTE:
      *count = object->proposal == 0 ? 1 : 0;
      if (*count == 1 && most > 0) *static_cast<int*>(into) = dnn::NUMERICAL_NOTE_NONDETERMINISTIC;
      return kSuccess;
    case dnn::ATTR_EXECUTION_PLAN_WORKSPACE_SIZE: return get_ints({told_workspace}, most, count, into);
    default: return kBadParameter;
  }
}

EXPORT cudnnBackendExecute(Handle* handle, const DnnDescriptor* plan, const DnnDescriptor* pack) {
  const DnnDescriptor& configuration = plan->object(dnn::ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
  const auto ids = pack->list<int64_t>(dnn::ATTR_VARIANT_PACK_UNIQUE_IDS);
  const auto pointers = pack->list<void*>(dnn::ATTR_VARIANT_PACK_DATA_POINTERS);
  void* workspace = pack->value<void*>(dnn::ATTR_VARIANT_PACK_WORKSPACE);
  if (configuration.proposal == 0 || ids.size() != pointers.size() || !workspace) return kFailed;
  if (failures > 0) return failures--, kFailed;
  std::map<int64_t, void*> bindings;
  for (size_t i = 0; i < ids.size(); i++) bindings[ids[i]] = pointers[i];
  // Numbers in host memory are read now. The bindings must be exactly the tensors of the graph.
  std::map<int64_t, float> numbers;
  std::set<int64_t> expected;
  for_each_tensor(configuration.object(dnn::ATTR_ENGINEHEUR_OPERATION_GRAPH), [&](int64_t id, bool is_number) {
    expected.insert(id);
    if (is_number && bindings.contains(id)) numbers[id] = *static_cast<float*>(bindings.at(id));
  });
  const auto is_expected = [&](const auto& pointer) { return expected.contains(pointer.first); };
  if (bindings.size() != expected.size() || !std::all_of(bindings.begin(), bindings.end(), is_expected))
    return kBadParameter;
  return submit(handle->stream, [graph = configuration.object(dnn::ATTR_ENGINEHEUR_OPERATION_GRAPH), bindings, numbers,
                                 workspace, life = std::weak_ptr<void>(plan->life)]() mutable {
    if (life.expired()) return kLaunchFailed;
    std::memset(workspace, 0xff, kWorkspaceBytes);
    for (auto& [id, number] : numbers) bindings[id] = &number;
    run(graph, bindings);
    return kSuccess;
  });
}

/// For tests: sets the bytes of workspace that plans ask for from now on; kWorkspaceBytes or more.
EXPORT softwareCudnnWorkspace(int64_t bytes) { return told_workspace = bytes, kSuccess; }
/// For tests: sets the version that the library tells; 0 for the first one.
EXPORT softwareCudnnVersion(int64_t version) {
  return told_version = version ? static_cast<size_t>(version) : kVersion, kSuccess;
}
/// For tests: makes this many executions fail.
EXPORT softwareCudnnFail(int count) { return failures = count, kSuccess; }
/// For tests: returns the number of variant packs that have been made.
extern "C" __attribute__((visibility("default"))) int softwareCudnnPacks(int) { return packs; }
