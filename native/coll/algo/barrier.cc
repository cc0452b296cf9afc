#include "coll/algo/algorithms.h"

namespace ringwise::coll {

void greet_everyone(int rank, int size, Schedule& schedule) {
  for (int k = 1; k < size; ++k) {
    schedule.greets.push_back((rank + k) % size);
    schedule.greeted_by.push_back((rank - k + size) % size);
  }
}

void greeting_barrier(const Op&, int rank, int size, Schedule& schedule) { greet_everyone(rank, size, schedule); }

}  // namespace ringwise::coll
