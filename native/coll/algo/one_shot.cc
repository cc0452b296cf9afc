// One-shot all-reduce for small buffers: latency of a single message. All ranks fold the same inputs in the same
// order (rank 0 first), so the result is bitwise equal everywhere.
#include "coll/algo/algorithms.h"
#include "coll/reduce.h"

namespace ringwise::coll {

void one_shot_all_reduce(const Op& op, int rank, int size, Schedule& schedule) {
  const size_t bytes = op.count * byte_size(op.dtype);
  const size_t stride = (bytes + 63) / 64 * 64;
  const size_t slots = schedule.scratch(stride * size);
  const Piece accumulator{Place::Scratch, schedule.scratch(op.count * byte_size(accumulator_of(op.dtype))), op.count};
  const auto slot = [&](int r) { return Piece{Place::Scratch, slots + stride * r, op.count}; };

  greet_everyone(rank, size, schedule);
  schedule.work(op.reduce == ReduceOp::PremulSum ? Local::Scale : Local::Copy, slot(rank), {Place::Input, 0, op.count});
  for (int k = 1; k < size; ++k) {
    const int from = (rank - k + size) % size;
    schedule.exchange((rank + k) % size, slot(rank), from, slot(from), Take::Store);
  }
  schedule.work(Local::Widen, accumulator, slot(0));
  for (int r = 1; r < size; ++r) schedule.work(Local::Accumulate, accumulator, slot(r));
  schedule.work(Local::Narrow, {Place::Output, 0, op.count}, accumulator);
}

}  // namespace ringwise::coll
