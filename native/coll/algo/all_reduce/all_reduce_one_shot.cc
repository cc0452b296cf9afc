// One-shot all-reduce for small buffers of few ranks: every rank sends its input to all others. All ranks reduce the
// inputs in the same order (member 0 first), so they get the same bits, and narrow floats are rounded once. Latency of
// a single message; n−1 messages, (n−1)·S bytes.
#include "coll/algo/algorithms.h"
#include "coll/algo/sums.h"

namespace ringwise::coll {

void one_shot_all_reduce(const Op& op, Piece sums, Piece output, const Team& team, Schedule& schedule) {
  const size_t stride = (op.count * byte_size(op.dtype) + 63) / 64 * 64;
  const size_t slots = schedule.scratch(stride * team.size);
  const auto slot = [&](int index) {
    return index == team.index ? sums : Piece{Region::Scratch, slots + stride * index, sums.count};
  };
  const size_t steps_before = schedule.steps.size();
  for (int k = 1; k < team.size; ++k) {
    schedule.send(team.after(k), sums, steps_before);
    schedule.receive(team.before(k), slot((team.index - k + team.size) % team.size), Take::Store, 0);
  }
  const Piece accumulator = scratch_sums(op, sums.count, schedule);
  schedule.work(Local::Widen, accumulator, slot(0));
  for (int index = 1; index < team.size; ++index) schedule.work(Local::Accumulate, accumulator, slot(index));
  finish(op, output, accumulator, schedule, schedule.sends.size());
}

}  // namespace ringwise::coll
