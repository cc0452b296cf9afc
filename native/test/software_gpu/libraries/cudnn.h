// The interface between cudnn.cc and cudnn_graph.cc: descriptors with copies of all attributes that were set.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "tensor/cuda/libraries/cudnn.h"

namespace ringwise::software_gpu {

struct DnnDescriptor {
  int kind = 0;
  std::shared_ptr<void> life;  // ends with the descriptor; copies that are attributes of others share it
  bool is_finished = false;
  int proposal = 0;  // index of an engine configuration among the proposals
  std::map<int, std::vector<char>> values;
  std::map<int, std::vector<DnnDescriptor>> objects;

  const DnnDescriptor& object(int attribute) const { return objects.at(attribute).at(0); }
  bool has(int attribute) const { return objects.contains(attribute); }
  template <class T>
  std::vector<T> list(int attribute) const {
    const std::vector<char>& bytes = values.at(attribute);
    const T* data = reinterpret_cast<const T*>(bytes.data());
    return {data, data + bytes.size() / sizeof(T)};
  }
  template <class T>
  T value(int attribute) const {
    return list<T>(attribute).at(0);
  }
};

/// Returns whether the interpreter supports every operation, and the outputs of forward convolutions have the right
/// sizes.
bool can_run(const DnnDescriptor& graph);
/// Computes a graph in double, and rounds every element to the type of the tensor to which it is written.
void run(const DnnDescriptor& graph, const std::map<int64_t, void*>& bindings);

}  // namespace ringwise::software_gpu
