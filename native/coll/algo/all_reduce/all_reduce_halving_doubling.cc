// Recursive halving and doubling (Rabenseifner, "Optimization of Collective Reduction Operations", ICCS 2004). Members
// whose numbers differ in bit 0, then bit 1, … exchange halves of the range that they still sum. Then, in reverse
// order, they exchange results of doubling length. Neighbouring members exchange the most data. If n is no power of
// two, members are paired first, as in recursive doubling. 2·log2 n steps, 2·S·(n−1)/n bytes; with pairs 2 more steps
// of S.
#include "coll/algo/algorithms.h"
#include "coll/algo/doubling.h"
#include "coll/algo/parts.h"
#include "coll/algo/sums.h"

namespace ringwise::coll {

namespace {

/// A range of parts: [begin, end).
struct Range {
  int begin;
  int end;
  Range half(bool upper) const {
    const int middle = (begin + end) / 2;
    return upper ? Range{middle, end} : Range{begin, middle};
  }
};

/// Plans the halving, down to this rank's part, whose sums end in `accumulator`.
void reduce_by_halving(const Op& op, Parts sums, Piece accumulator, const Doubling& doubling, Schedule& schedule) {
  Range range{0, doubling.size()};
  for (int round = 0; round < doubling.rounds(); ++round) {
    const bool upper = doubling.is_upper(round);
    const Range keep = range.half(upper), give = range.half(!upper);
    const Piece mine = sums.range(keep.begin, keep.end), theirs = sums.range(give.begin, give.end);
    const bool last = round + 1 == doubling.rounds();
    // The first round moves the sums to scratch, the last one to the accumulator; the others add in place.
    if (round == 0 || last) sums = sums.moved(last ? accumulator : scratch_sums(op, mine.count, schedule), keep.begin);
    const size_t sends_before = schedule.sends.size();
    schedule.send(doubling.partner(round), theirs, schedule.steps.size());
    schedule.receive(doubling.partner(round), sums.range(keep.begin, keep.end), upper ? Take::Prepend : Take::Append,
                     sends_before, mine);
    range = keep;
  }
}

/// Plans the doubling: goes back through the ranges of the halving. In each round this rank has the inner range and
/// receives the rest of the outer one.
void gather_by_doubling(const Parts& outputs, const Doubling& doubling, Schedule& schedule) {
  for (int round = doubling.rounds() - 1; round >= 0; --round) {
    Range outer{0, doubling.size()};
    for (int r = 0; r < round; ++r) outer = outer.half(doubling.is_upper(r));
    const Range mine = outer.half(doubling.is_upper(round)), theirs = outer.half(!doubling.is_upper(round));
    const int partner = doubling.partner(round);
    schedule.exchange(partner, outputs.range(mine.begin, mine.end), partner, outputs.range(theirs.begin, theirs.end),
                      Take::Store);
  }
}

}  // namespace

void halving_doubling_all_reduce(const Op& op, Piece sums, Piece output, const Team& team, Schedule& schedule) {
  const Doubling doubling(team);
  sums = widened(op, sums, schedule);
  if (doubling.gives_away()) return give_and_get_back(sums, output, team, schedule);
  if (doubling.takes_in()) {
    const Piece joined = scratch_sums(op, sums.count, schedule);
    schedule.receive(team.before(1), joined, Take::Prepend, schedule.sends.size(), sums);
    sums = joined;
  }
  int left = 0;  // this rank's part after halving: the bits of its number in reverse order
  for (int round = 0; round < doubling.rounds(); ++round) left = 2 * left + (doubling.is_upper(round) ? 1 : 0);
  const Parts outputs = Parts::cut(output, op.dtype, doubling.size());
  const Piece accumulator = accumulator_for(op, outputs.of(left), schedule);
  reduce_by_halving(op, Parts::cut(sums, op.dtype, doubling.size()), accumulator, doubling, schedule);
  finish(op, outputs.of(left), accumulator, schedule, schedule.sends.size());
  gather_by_doubling(outputs, doubling, schedule);
  if (doubling.takes_in()) schedule.send(team.before(1), output, schedule.steps.size());
}

}  // namespace ringwise::coll
