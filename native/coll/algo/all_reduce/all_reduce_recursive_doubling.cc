// Recursive doubling (Thakur, Rabenseifner, Gropp, "Optimization of Collective Communication Operations in MPICH",
// 2005): in round k, members whose numbers differ in bit k exchange their sums, so that after log2 n rounds all have
// the complete sum. Both partners use the sum of the lower members as the left operand, so both get the same bits. If n
// is no power of two, members are paired first (see doubling.h): an even one gives its input to its odd neighbour and
// gets the result back. ⌊log2 n⌋ steps of S bytes, and 2 more if n is no power of two. For small buffers of many ranks,
// and for most sizes on two ranks (see tuning_table.h).
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
  // Only the last sum may be written to the output: by then data from every rank has arrived, so all ranks agree.
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
