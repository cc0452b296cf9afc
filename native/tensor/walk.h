// A strided walk: one shape and, for each operand, the location of its elements. Kernels whose operands may have any
// strides take one. There, operand 0 is written and the others are read; broadcasting is a stride of 0, a reduced
// dimension is one along which the output's stride is 0, and a number is a float64 whose strides are all 0.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/dtype.h"
#include "tensor/threads.h"

namespace ringwise::tensor {

constexpr int kMaxRank = 16;
constexpr int kMaxOperands = 4;

struct Operand {
  char* data = nullptr;
  DType dtype = DType::Float32;
  bool is_number = false;       // `data` is a float64 in host memory, also where the other operands lie on a device
  ptrdiff_t strides[kMaxRank];  // elements; bytes in a simplified walk. Only the first `rank` are set
};

struct Walk {
  int rank = 0;
  int operands = 0;
  size_t shape[kMaxRank];
  Operand operand[kMaxOperands];
};

/// Returns the walk without dimensions of size 1, with neighbouring dimensions merged where every operand allows it,
/// and with strides in bytes. The result has at least one dimension, and one of size 0 if the walk has no elements.
Walk simplified(const Walk& walk);

/// Calls row(data) for every index of all dimensions but the last; data[i] is where operand i's row begins. Strides are
/// bytes.
template <class Row>
inline void for_each_row(const Walk& walk, Row row) {
  for (int d = 0; d < walk.rank; d++) {
    if (walk.shape[d] == 0) return;
  }
  char* data[kMaxOperands];
  for (int i = 0; i < walk.operands; i++) data[i] = walk.operand[i].data;
  size_t index[kMaxRank] = {};
  for (;;) {
    row(data);
    int d = walk.rank - 2;
    for (; d >= 0; d--) {
      for (int i = 0; i < walk.operands; i++) data[i] += walk.operand[i].strides[d];
      if (++index[d] < walk.shape[d]) break;
      index[d] = 0;
      for (int i = 0; i < walk.operands; i++) {
        data[i] -= walk.operand[i].strides[d] * static_cast<ptrdiff_t>(walk.shape[d]);
      }
    }
    if (d < 0) return;
  }
}

/// Cuts a walk into parts and calls body(part) for each, on several threads. Strides are bytes. Operand 0 must move
/// along every dimension longer than 1, so that parts write to different elements. `grain`: elements that are worth a
/// thread.
template <class Body>
inline void for_each_part_of(const Walk& walk, size_t grain, Body body) {
  size_t count = 1;
  int longest = 0;
  for (int d = 0; d < walk.rank; d++) {
    count *= walk.shape[d];
    if (walk.shape[d] > walk.shape[longest]) longest = d;
  }
  const size_t parts = std::min(parts_of(count, grain), walk.shape[longest]);
  if (parts <= 1) {
    body(walk);
    return;
  }
  const int cut = walk.shape[0] >= parts ? 0 : longest;
  for_each_part(parts, [&](size_t i) {
    Walk part = walk;
    const size_t begin = walk.shape[cut] * i / parts, end = walk.shape[cut] * (i + 1) / parts;
    part.shape[cut] = end - begin;
    for (int j = 0; j < walk.operands; j++)
      part.operand[j].data += static_cast<ptrdiff_t>(begin) * walk.operand[j].strides[cut];
    body(part);
  });
}

}  // namespace ringwise::tensor
