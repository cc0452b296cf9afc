// Makes strided walks over memory of any dtype from lists of shapes, strides and pointers.
#pragma once

#include <algorithm>
#include <vector>

#include "tensor/kernels.h"

namespace ringwise::test {

/// One operand of a walk: memory, and its stride for each dimension, in elements.
struct View {
  const void* data;
  DType dtype;
  std::vector<ptrdiff_t> strides;
};

inline View floats(const float* data, std::vector<ptrdiff_t> strides = {1}) { return {data, DType::Float32, strides}; }

inline tensor::Walk walk_of(std::vector<size_t> shape, std::vector<View> views) {
  tensor::Walk walk;
  walk.rank = static_cast<int>(shape.size());
  walk.operands = static_cast<int>(views.size());
  std::copy(shape.begin(), shape.end(), walk.shape);
  for (size_t i = 0; i < views.size(); i++) {
    walk.operand[i].data = static_cast<char*>(const_cast<void*>(views[i].data));
    walk.operand[i].dtype = views[i].dtype;
    std::copy(views[i].strides.begin(), views[i].strides.end(), walk.operand[i].strides);
  }
  return walk;
}

/// Returns the call of one product of dense matrices.
inline tensor::Matmul product_of(float* c, const float* a, const float* b, const tensor::MatmulSizes& sizes) {
  return {sizes, walk_of({1}, {floats(c, {0}), floats(a, {0}), floats(b, {0})})};
}

}  // namespace ringwise::test
