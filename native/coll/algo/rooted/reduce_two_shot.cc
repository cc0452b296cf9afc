// Two-shot reduce for large buffers (Rabenseifner, ICCS 2004): a reduce-scatter, so that all ranks share the additions,
// then every rank sends its part to the root. 2(n−1) steps at the root, which receives 2·S·(n−1)/n bytes; n steps and S
// bytes out elsewhere.
#include "coll/algo/algorithms.h"
#include "coll/algo/parts.h"
#include "coll/algo/sums.h"

namespace ringwise::coll {

void two_shot_reduce(const Op& op, int rank, int size, Schedule& schedule) {
  const Piece all{Region::Input, 0, op.count};
  const Parts outputs = Parts::cut({Region::Output, 0, op.count}, op.dtype, size);
  const Piece mine = outputs.of(rank);
  const Piece sums = scratch_sums(op, mine.count, schedule);

  handshake_all(rank, size, schedule);
  reduce_to_owners(op, Parts::cut(contribution(op, all, schedule), op.dtype, size), sums, {rank, size}, schedule);
  if (rank != op.root) {
    const Piece part =
        sums.wide ? Piece{Region::Scratch, schedule.scratch(mine.count * byte_size(op.dtype)), mine.count} : sums;
    finish(op, part, sums, schedule, schedule.sends.size());
    return schedule.send(op.root, part, schedule.steps.size());
  }
  finish(op, mine, sums, schedule, schedule.sends.size());
  for (int k = 1; k < size; ++k) {
    const int from = (rank - k + size) % size;
    schedule.receive(from, outputs.of(from), Take::Store, schedule.sends.size());
  }
}

}  // namespace ringwise::coll
