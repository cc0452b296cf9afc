// What cudnn.cc hands to cudnn_graph.cc: descriptors with everything that was set on them, by value.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "tensor/cuda/libraries/cudnn.h"

namespace ringwise::software_gpu {

struct DnnDescriptor {
  int kind = 0;
  bool is_finished = false;
  int proposal = 0;  // which of the proposals an engine configuration is
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

/// Whether the interpreter knows every operation, and shapes fit.
bool can_run(const DnnDescriptor& graph);
/// Computes a graph in double, rounding to the type of every tensor that is written.
void run(const DnnDescriptor& graph, const std::map<int64_t, void*>& bindings);

}  // namespace ringwise::software_gpu
