// Ring all-reduce (Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", 2009).
// The buffer is cut into one part per member. The sum of part c begins at member c and goes round the circle, every
// member adding its own; after n−1 steps it is complete at member c−1, and goes round once more as a result. Every rank
// talks to its two neighbours only, so hosts that stand in a row share no link with anybody.
//
// Parts travel in segments: while the last of one arrives, the first is already on its way again. With m segments of
// time t and latency a: (2(n−1)−1)·max(m·t, a+t) + m·t + a; so latency is paid once where a part takes longer than it.
// 2(n−1) steps, 2·S·(n−1)/n bytes.
#include <algorithm>

#include "coll/algo/algorithms.h"
#include "coll/algo/parts.h"
#include "coll/algo/sums.h"

namespace ringwise::coll {

namespace {

constexpr size_t kSegment = 128 * 1024;  // bytes

/// Entries of one of the schedule's lists, the same number for each segment of a part.
struct Run {
  size_t begin = 0;
  size_t segments = 0;
  size_t each = 1;
  /// How far the list is when segment `i` is done.
  size_t end_of(size_t i) const { return segments == 0 ? begin : begin + (std::min(i, segments - 1) + 1) * each; }
};

/// Plans the steps around the circle: in each, this rank sends one part and takes in the next.
class Circle {
 public:
  Circle(const Op& op, const Team& team, Schedule& schedule)
      : op_(op),
        elements_(kSegment / byte_size(op.dtype)),
        to_(team.after(1)),
        from_(team.before(1)),
        schedule_(schedule),
        came_{schedule.steps.size()} {}

  /// Passes on the part that came in the step before, each segment as soon as it is there.
  void send(Piece part) {
    left_before_ = left_;
    left_ = {schedule_.sends.size(), segments(part)};
    for (size_t i = 0; i < left_.segments; ++i) schedule_.send(to_, segment(part, i), came_.end_of(i));
  }

  /// Takes in partial sums and adds `mine`. Two scratch buffers serve in turn: what this one holds is what was sent in
  /// the step before, and must have left. Complete sums become the `output`.
  void add(Piece accumulator, Piece mine, const Piece* output) {
    came_ = {schedule_.steps.size(), segments(accumulator)};
    for (size_t i = 0; i < came_.segments; ++i) {
      schedule_.receive(from_, segment(accumulator, i), Take::Prepend, left_before_.end_of(i), segment(mine, i));
      if (output != nullptr) finish(op_, segment(*output, i), segment(accumulator, i), schedule_, 0);
    }
    if (output != nullptr && came_.segments > 0) came_.each = (schedule_.steps.size() - came_.begin) / came_.segments;
  }

  /// Takes in a result.
  void store(Piece part) {
    came_ = {schedule_.steps.size(), segments(part)};
    for (size_t i = 0; i < came_.segments; ++i) schedule_.receive(from_, segment(part, i), Take::Store, 0);
  }

 private:
  size_t segments(const Piece& part) const { return (part.count + elements_ - 1) / elements_; }
  Piece segment(const Piece& part, size_t i) const {
    return part.count <= elements_ ? part : slice(op_, part, i * elements_, elements_);
  }

  const Op& op_;
  size_t elements_;  // of a segment
  int to_;
  int from_;
  Schedule& schedule_;
  Run came_;  // of schedule_.steps: the part that came in last
  Run left_;  // of schedule_.sends: the part that was sent last, and the one before
  Run left_before_;
};

}  // namespace

void ring_all_reduce(const Op& op, Piece sums, Piece output, const Team& team, Schedule& schedule) {
  const int n = team.size;
  const auto index = [&](int steps_back) { return (team.index - steps_back + 2 * n) % n; };
  sums = widened(op, sums, schedule);
  const Parts inputs = Parts::cut(sums, op.dtype, n);
  const Parts outputs = Parts::cut(output, op.dtype, n);
  Piece scratch[2];
  for (int i = 0; i < std::min(2, n - 2); ++i) scratch[i] = scratch_sums(op, inputs.of(0).count, schedule);

  Circle circle(op, team, schedule);
  Piece part = inputs.of(team.index);
  for (int k = 1; k < n; ++k) {
    const Piece mine = inputs.of(index(k));
    const bool complete = k == n - 1;
    const Piece output_part = outputs.of(index(k));
    const Piece accumulator =
        complete ? accumulator_for(op, output_part, schedule) : slice(op, scratch[(k - 1) % 2], 0, mine.count);
    circle.send(part);
    circle.add(accumulator, mine, complete ? &output_part : nullptr);
    part = accumulator;
  }
  part = outputs.of(index(n - 1));
  for (int k = 0; k < n - 1; ++k) {
    circle.send(part);
    part = outputs.of(index(k));
    circle.store(part);
  }
}

}  // namespace ringwise::coll
