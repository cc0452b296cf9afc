// One-shot all-reduce for small buffers of few ranks: everybody sends its input to everybody. All fold them in the same
// order (place 0 first), so the result is bitwise equal everywhere, and halves are rounded once. Latency of a single
// message; n−1 messages, (n−1)·S bytes.
#include "coll/algo/algorithms.h"
#include "coll/algo/sums.h"

namespace ringwise::coll {

void one_shot_all_reduce(const Op& op, Piece sums, Piece output, const Team& team, Schedule& schedule) {
  const size_t stride = (op.count * byte_size(op.dtype) + 63) / 64 * 64;
  const size_t slots = schedule.scratch(stride * team.size);
  const auto slot = [&](int place) {
    return place == team.place ? sums : Piece{Place::Scratch, slots + stride * place, sums.count};
  };
  const size_t steps_before = schedule.steps.size();
  for (int k = 1; k < team.size; ++k) {
    schedule.send(team.after(k), sums, steps_before);
    schedule.receive(team.before(k), slot((team.place - k + team.size) % team.size), Take::Store, 0);
  }
  const Piece room = scratch_sums(op, sums.count, schedule);
  schedule.work(Local::Widen, room, slot(0));
  for (int place = 1; place < team.size; ++place) schedule.work(Local::Accumulate, room, slot(place));
  finish(op, output, room, schedule, schedule.sends.size());
}

}  // namespace ringwise::coll
