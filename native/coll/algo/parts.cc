#include "coll/algo/parts.h"

#include <algorithm>

#include "coll/algo/sums.h"
#include "coll/reduce/reduce.h"

namespace ringwise::coll {

Parts Parts::per_rank(Region region, DType dtype, int size, size_t count, const size_t* counts) {
  Parts parts;
  parts.base_.region = region;
  parts.element_ = byte_size(dtype);
  parts.part_ = count;
  parts.total_ = count * size;
  if (counts == nullptr) return parts;
  parts.begins_.reserve(size + 1);
  parts.begins_.push_back(0);
  for (int rank = 0; rank < size; ++rank) parts.begins_.push_back(parts.begins_.back() + counts[rank]);
  parts.total_ = parts.begins_.back();
  return parts;
}

Parts Parts::cut(Piece whole, DType dtype, int size) {
  const size_t per_line = 64 / byte_size(dtype);
  Parts parts;
  parts.base_ = whole;
  parts.element_ = byte_size(whole.wide ? accumulator_of(dtype) : dtype);
  parts.part_ = ((whole.count + size - 1) / size + per_line - 1) / per_line * per_line;
  parts.total_ = whole.count;
  return parts;
}

size_t Parts::begin_of(int rank) const { return begins_.empty() ? std::min(total_, part_ * rank) : begins_[rank]; }

Piece Parts::range(int begin, int end) const {
  const size_t first = begin_of(begin);
  return {base_.region, base_.offset + first * element_, begin_of(end) - first, base_.wide};
}

Parts Parts::moved(Piece to, int first) const {
  Parts parts = *this;
  parts.base_ = to;
  parts.base_.offset -= begin_of(first) * element_;  // may wrap around; adding a part's beginning wraps it back
  return parts;
}

void reduce_to_owners(const Op& op, const Parts& inputs, Piece target, const Team& team, Schedule& schedule) {
  const size_t sends_before = schedule.sends.size(), steps_before = schedule.steps.size();
  const Piece mine = inputs.of(team.index);
  if (team.size == 1) return schedule.work(target.wide && !mine.wide ? Local::Widen : Local::Copy, target, mine);
  Piece between = target.region == Region::Output && team.size > 2 ? scratch_sums(op, mine.count, schedule) : target;
  target.wide = between.wide = mine.wide;  // `wide` is about the messages; the sums always are accumulators
  Piece sum = mine;
  for (int k = 1; k < team.size; ++k) {
    const Piece next = k + 1 < team.size ? between : target;
    const bool in_place = k > 1 && next.region == sum.region;
    schedule.send(team.after(k), inputs.of((team.index + k) % team.size), steps_before);
    schedule.receive(team.before(k), next, in_place ? Take::Accumulate : Take::Append, sends_before, sum);
    sum = next;
  }
}

void spread_from_owners(const Parts& outputs, const Team& team, Schedule& schedule) {
  const size_t sends_before = schedule.sends.size(), steps_before = schedule.steps.size();
  for (int k = 1; k < team.size; ++k) {
    schedule.send(team.after(k), outputs.of(team.index), steps_before);
    schedule.receive(team.before(k), outputs.of((team.index - k + team.size) % team.size), Take::Store, sends_before);
  }
}

}  // namespace ringwise::coll
