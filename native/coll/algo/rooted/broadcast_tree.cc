// Binomial tree (see Thakur, Rabenseifner, Gropp, "Optimization of Collective Communication Operations in MPICH",
// 2005). With ranks counted from the root, rank v gets the buffer from v without its lowest set bit, and passes it
// to v + 2^j for every 2^j below that bit, the largest first. ⌈log2 n⌉ steps, S bytes in, up to ⌈log2 n⌉·S out.
#include "coll/algo/algorithms.h"

namespace ringwise::coll {

void tree_broadcast(const Op& op, int rank, int size, Schedule& schedule) {
  const int v = (rank - op.root + size) % size;
  const auto real = [&](int virtual_rank) { return (virtual_rank + op.root) % size; };

  // Ranks that name different roots plan different trees, in which some pairs exchange no message. So all ranks
  // exchange handshakes.
  handshake_all(rank, size, schedule);
  int bit = 1;  // becomes the lowest set bit of v; for the root the first power of two ≥ size
  while (bit < size && (v & bit) == 0) bit <<= 1;
  const Piece input{Region::Input, 0, op.count};
  const Piece output{Region::Output, 0, op.count};
  if (v != 0) {
    schedule.exchange(-1, {}, real(v - bit), output, Take::Store);
  }
  for (int j = bit >> 1; j > 0; j >>= 1) {
    if (v + j < size) schedule.exchange(real(v + j), input, -1, {}, Take::Store);
  }
}

}  // namespace ringwise::coll
