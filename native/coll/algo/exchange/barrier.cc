// Plans that consist of handshakes: the barrier, and the handshakes of other algorithms.
#include "coll/algo/algorithms.h"

namespace ringwise::coll {

void handshake_all(int rank, int size, Schedule& schedule) {
  for (int k = 1; k < size; ++k) {
    schedule.handshake_targets.push_back((rank + k) % size);
    schedule.handshake_sources.push_back((rank - k + size) % size);
  }
}

void handshake_barrier(const Op&, int rank, int size, Schedule& schedule) { handshake_all(rank, size, schedule); }

}  // namespace ringwise::coll
