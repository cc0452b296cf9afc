// Recursive doubling (Thakur, Rabenseifner, Gropp, "Optimization of Collective Communication Operations in MPICH",
// 2005): in round k members that differ in bit k exchange their sums, so that after log2 n rounds all have everything.
// Both put the sum of the lower members left, so both get the same bits. Where n is no power of two, the first e of the
// members are paired, with n − e that power: an even one gives its input to its odd neighbour and gets the result back.
// log2 n steps of S bytes, and 2 more where n is no power of two. The best for small buffers, and for two ranks always.
#include "coll/algo/algorithms.h"
#include "coll/algo/doubling.h"
#include "coll/algo/sums.h"

namespace ringwise::coll {

void recursive_doubling_all_reduce(const Op& op, Piece sums, Piece output, const Team& team, Schedule& schedule) {
  const Doubling doubling(team);
  sums = widened(op, sums, schedule);
  if (doubling.gives_away()) return give_and_get_back(sums, output, team, schedule);

  int joins = doubling.rounds() + (doubling.takes_in() ? 1 : 0);
  const Piece accumulator = accumulator_for(op, output, schedule);
  // Only the last join may write to the output: then every rank has had a part in it.
  const Piece between = accumulator.wide || joins <= 1 ? accumulator : scratch_sums(op, output.count, schedule);
  const auto next = [&] { return --joins == 0 ? accumulator : between; };
  if (doubling.takes_in()) {
    const Piece target = next();
    schedule.receive(team.before(1), target, Take::Prepend, schedule.sends.size(), sums);
    sums = target;
  }
  for (int round = 0; round < doubling.rounds(); ++round) {
    const int partner = doubling.partner(round);
    const Piece target = next();
    schedule.exchange(partner, sums, partner, target, doubling.is_upper(round) ? Take::Prepend : Take::Append);
    sums = target;
  }
  finish(op, output, sums, schedule, schedule.sends.size());
  if (doubling.takes_in()) schedule.send(team.before(1), output, schedule.steps.size());
}

}  // namespace ringwise::coll
