#include "tensor/walk.h"

namespace ringwise::tensor {

Walk simplified(const Walk& walk) {
  Walk result;
  result.operands = walk.operands;
  ptrdiff_t element[kMaxOperands];
  for (int i = 0; i < walk.operands; i++) {
    result.operand[i].data = walk.operand[i].data;
    result.operand[i].dtype = walk.operand[i].dtype;
    result.operand[i].is_number = walk.operand[i].is_number;
    element[i] = static_cast<ptrdiff_t>(byte_size(walk.operand[i].dtype));
  }
  const auto extends_last = [&](int d) {
    for (int i = 0; i < walk.operands; i++) {
      const ptrdiff_t span = walk.operand[i].strides[d] * element[i] * static_cast<ptrdiff_t>(walk.shape[d]);
      if (result.operand[i].strides[result.rank - 1] != span) return false;
    }
    return true;
  };
  for (int d = 0; d < walk.rank; d++) {
    if (walk.shape[d] == 1) continue;
    int target = result.rank;
    if (target > 0 && extends_last(d)) {
      target--;
      result.shape[target] *= walk.shape[d];
    } else {
      result.shape[target] = walk.shape[d];
      result.rank++;
    }
    for (int i = 0; i < walk.operands; i++) result.operand[i].strides[target] = walk.operand[i].strides[d] * element[i];
  }
  if (result.rank == 0) {
    result.rank = 1;
    result.shape[0] = 1;
    for (int i = 0; i < walk.operands; i++) result.operand[i].strides[0] = element[i];
  }
  return result;
}

}  // namespace ringwise::tensor
