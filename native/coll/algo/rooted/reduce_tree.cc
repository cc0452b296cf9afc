// Binomial tree towards the root (Thakur, Rabenseifner, Gropp 2005). With ranks counted from the root, rank v adds the
// sums of v+1, v+2, v+4, … below its lowest set bit, in this order, then sends its sum to v without that bit. So the
// order of additions depends only on n and the root. Sums of several ranks travel as float32 if the type is a
// narrow float. ⌈log2 n⌉ steps, S bytes out, up to ⌈log2 n⌉·S in.
#include "coll/algo/algorithms.h"
#include "coll/algo/sums.h"
#include "coll/reduce/reduce.h"

namespace ringwise::coll {

void tree_reduce(const Op& op, int rank, int size, Schedule& schedule) {
  const int v = (rank - op.root + size) % size;
  const auto real = [&](int virtual_rank) { return (virtual_rank + op.root) % size; };
  const auto is_leaf = [&](int virtual_rank) { return virtual_rank % 2 != 0 || virtual_rank + 1 >= size; };

  handshake_all(rank, size, schedule);
  Piece mine = contribution(op, {Region::Input, 0, op.count}, schedule);
  if (v == 0 || !is_leaf(v)) {
    const Piece accumulator{Region::Scratch, schedule.scratch(op.count * byte_size(accumulator_of(op.dtype))), op.count,
                            true};
    schedule.work(Local::Widen, accumulator, mine);
    for (int bit = 1; bit < size && (v & bit) == 0; bit <<= 1) {
      if (v + bit >= size) continue;
      Piece arriving = accumulator;
      arriving.wide = !is_leaf(v + bit);
      schedule.exchange(-1, {}, real(v + bit), arriving, Take::Accumulate);
    }
    mine = accumulator;
  }
  if (v == 0) return schedule.work(Local::Narrow, {Region::Output, 0, op.count}, mine);
  schedule.exchange(real(v & (v - 1)), mine, -1, {}, Take::Store);
}

}  // namespace ringwise::coll
