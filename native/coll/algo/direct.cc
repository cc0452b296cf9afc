// Direct exchange: every part of the buffer has one owner, who gets the other ranks' contributions straight from
// them and folds them into accumulators: its own first, then those of r−1, r−2, … So a result has one author and
// one order, whatever arrives when, and halves are rounded once.
// The reduce-scatter and all-gather phases are Rabenseifner's decomposition of all-reduce ("Optimization of
// Collective Reduction Operations", ICCS 2004) with pairwise exchange in place of recursive halving.
#include <algorithm>

#include "coll/algo/algorithms.h"
#include "coll/reduce.h"

namespace ringwise::coll {

namespace {

/// How a buffer of `count` elements is cut into one part per rank.
struct Parts {
  size_t count;
  size_t part;       // elements; the last ones may be shorter or empty
  size_t element;    // bytes
  Place place;
  size_t base = 0;   // bytes

  Piece of(int rank) const {
    const size_t begin = std::min(count, part * rank);
    return {place, base + begin * element, std::min(part, count - begin)};
  }
};

/// Leaves the reduced part of `rank` in accumulators; returns where.
Piece reduce_parts(const Op& op, Parts parts, int rank, int size, Schedule& schedule) {
  if (op.reduce == ReduceOp::PremulSum) {
    const size_t scaled = schedule.scratch(parts.count * parts.element);
    schedule.work(Local::Scale, {Place::Scratch, scaled, parts.count}, {Place::Input, 0, parts.count});
    parts.place = Place::Scratch;
    parts.base = scaled;
  }
  const Piece mine = parts.of(rank);
  const Piece accumulator{Place::Scratch, schedule.scratch(mine.count * byte_size(accumulator_of(op.dtype))), mine.count};
  schedule.work(Local::Widen, accumulator, mine);
  for (int k = 1; k < size; ++k) {
    const int to = (rank + k) % size;
    schedule.exchange(to, parts.of(to), (rank - k + size) % size, accumulator, Take::Accumulate);
  }
  return accumulator;
}

}  // namespace

void two_shot_all_reduce(const Op& op, int rank, int size, Schedule& schedule) {
  const size_t element = byte_size(op.dtype);
  // Parts begin at multiples of 64 bytes, so that no two ranks write the same cache line.
  const size_t per_line = 64 / element;
  const size_t part = ((op.count + size - 1) / size + per_line - 1) / per_line * per_line;
  const Parts inputs{op.count, part, element, Place::Input};
  const Parts outputs{op.count, part, element, Place::Output};

  greet_everyone(rank, size, schedule);
  const Piece accumulator = reduce_parts(op, inputs, rank, size, schedule);
  schedule.work(Local::Narrow, outputs.of(rank), accumulator);
  for (int k = 1; k < size; ++k) {
    const int from = (rank - k + size) % size;
    schedule.exchange((rank + k) % size, outputs.of(rank), from, outputs.of(from), Take::Store);
  }
}

void direct_reduce_scatter(const Op& op, int rank, int size, Schedule& schedule) {
  const Parts inputs{op.count * size, op.count, byte_size(op.dtype), Place::Input};
  greet_everyone(rank, size, schedule);
  const Piece accumulator = reduce_parts(op, inputs, rank, size, schedule);
  schedule.work(Local::Narrow, {Place::Output, 0, op.count}, accumulator);
}

void direct_all_gather(const Op& op, int rank, int size, Schedule& schedule) {
  const Parts outputs{op.count * size, op.count, byte_size(op.dtype), Place::Output};
  const Piece input{Place::Input, 0, op.count};
  greet_everyone(rank, size, schedule);
  for (int k = 1; k < size; ++k) {
    const int from = (rank - k + size) % size;
    schedule.exchange((rank + k) % size, input, from, outputs.of(from), Take::Store);
  }
  schedule.work(Local::Copy, outputs.of(rank), input);
}

}  // namespace ringwise::coll
