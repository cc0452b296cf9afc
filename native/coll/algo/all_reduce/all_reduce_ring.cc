// Ring all-reduce (Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", 2009).
// The buffer is cut into one part per member. The sum of part c starts at member c and travels around the ring, and
// every member adds its own values. After n−1 steps the sum is complete at member c−1, and travels around once more as
// the result. Every rank sends only to the next one and receives only from the one before, so with one rank per host
// each direction of a host's network link carries the data of a single pair.
//
// Parts travel in segments: while the last segment of a part arrives, this rank already passes on the first. With m
// segments of time t and latency a, the time is (2(n−1)−1)·max(m·t, a+t) + m·t + a. So the latency counts only once if
// a part takes longer than the latency. 2(n−1) steps, 2·S·(n−1)/n bytes.
#include <algorithm>

#include "coll/algo/algorithms.h"
#include "coll/algo/parts.h"
#include "coll/algo/sums.h"

namespace ringwise::coll {

namespace {

constexpr size_t kSegment = 128 * 1024;  // bytes

/// Consecutive entries of one list of the schedule, with the same number of entries for each segment of a part.
struct Run {
  size_t begin = 0;
  size_t segments = 0;
  size_t each = 1;
  /// Returns the number of entries of the list that end with segment `i`.
  size_t end_of(size_t i) const { return segments == 0 ? begin : begin + (std::min(i, segments - 1) + 1) * each; }
};

/// Plans the steps around the ring. In each, this rank sends one part and receives the next.
class Ring {
 public:
  Ring(const Op& op, const Team& team, Schedule& schedule)
      : op_(op),
        elements_(kSegment / byte_size(op.dtype)),
        to_(team.after(1)),
        from_(team.before(1)),
        schedule_(schedule),
        received_{schedule.steps.size()} {}

  /// Sends the part that arrived in the previous step, each segment as soon as it is complete.
  void send(Piece part) {
    sent_before_ = sent_;
    sent_ = {schedule_.sends.size(), segments(part)};
    for (size_t i = 0; i < sent_.segments; ++i) schedule_.send(to_, segment(part, i), received_.end_of(i));
  }

  /// Receives partial sums into `accumulator` and adds `mine`. Two scratch buffers alternate: this one holds the part
  /// that was sent in the previous step, so each segment waits for that send. If `output` is not null, the sums are
  /// complete and become the result there.
  void add(Piece accumulator, Piece mine, const Piece* output) {
    received_ = {schedule_.steps.size(), segments(accumulator)};
    for (size_t i = 0; i < received_.segments; ++i) {
      schedule_.receive(from_, segment(accumulator, i), Take::Prepend, sent_before_.end_of(i), segment(mine, i));
      if (output != nullptr) finish(op_, segment(*output, i), segment(accumulator, i), schedule_, 0);
    }
    if (output != nullptr && received_.segments > 0)
      received_.each = (schedule_.steps.size() - received_.begin) / received_.segments;
  }

  /// Receives a part of the result.
  void store(Piece part) {
    received_ = {schedule_.steps.size(), segments(part)};
    for (size_t i = 0; i < received_.segments; ++i) schedule_.receive(from_, segment(part, i), Take::Store, 0);
  }

 private:
  size_t segments(const Piece& part) const { return (part.count + elements_ - 1) / elements_; }
  Piece segment(const Piece& part, size_t i) const {
    return part.count <= elements_ ? part : slice(op_, part, i * elements_, elements_);
  }

  const Op& op_;
  size_t elements_;  // elements of a segment
  int to_;
  int from_;
  Schedule& schedule_;
  Run received_;     // in schedule_.steps: the part that arrived last
  Run sent_;         // in schedule_.sends: the part that was sent last
  Run sent_before_;  // in schedule_.sends: the part that was sent before that
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

  Ring ring(op, team, schedule);
  Piece part = inputs.of(team.index);
  for (int k = 1; k < n; ++k) {
    const Piece mine = inputs.of(index(k));
    const bool complete = k == n - 1;
    const Piece output_part = outputs.of(index(k));
    const Piece accumulator =
        complete ? accumulator_for(op, output_part, schedule) : slice(op, scratch[(k - 1) % 2], 0, mine.count);
    ring.send(part);
    ring.add(accumulator, mine, complete ? &output_part : nullptr);
    part = accumulator;
  }
  part = outputs.of(index(n - 1));
  for (int k = 0; k < n - 1; ++k) {
    ring.send(part);
    part = outputs.of(index(k));
    ring.store(part);
  }
}

}  // namespace ringwise::coll
