// Simplifies a strided walk and runs it row by row. Dimensions of size 1 go, neighbours that are dense in every input
// become one; what is left is an innermost row, where almost all work happens, inside an odometer.
// Included only by level.h.
namespace ringwise::tensor::RINGWISE_LEVEL {

template <int N>
inline Walk<N> simplified(const Walk<N>& walk) {
  Walk<N> result;
  const auto extends_last = [&](int d) {
    for (int i = 0; i < N; i++) {
      const ptrdiff_t size = static_cast<ptrdiff_t>(walk.shape[d]);
      if (result.strides[i][result.rank - 1] != walk.strides[i][d] * size) return false;
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
    for (int i = 0; i < N; i++) result.strides[i][target] = walk.strides[i][d];
  }
  if (result.rank == 0) {
    result.rank = 1;
    result.shape[0] = 1;
    for (int i = 0; i < N; i++) result.strides[i][0] = 1;
  }
  return result;
}

// Calls row(out_offset, offsets) for each innermost row of a simplified walk.
template <int N, class Row>
inline void for_each_row(const Walk<N>& walk, Row row) {
  for (int d = 0; d < walk.rank; d++) {
    if (walk.shape[d] == 0) return;
  }
  const int outer = walk.rank - 1;
  const size_t length = walk.shape[outer];
  size_t index[kMaxRank] = {}, out = 0;
  ptrdiff_t offsets[N] = {};
  for (;;) {
    row(out, offsets);
    out += length;
    int d = outer - 1;
    for (; d >= 0; d--) {
      for (int i = 0; i < N; i++) offsets[i] += walk.strides[i][d];
      if (++index[d] < walk.shape[d]) break;
      index[d] = 0;
      for (int i = 0; i < N; i++) offsets[i] -= walk.strides[i][d] * static_cast<ptrdiff_t>(walk.shape[d]);
    }
    if (d < 0) return;
  }
}

}  // namespace ringwise::tensor::RINGWISE_LEVEL
