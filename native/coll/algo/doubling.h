// Reduces a team of n members to a power of two, n − e, for algorithms that pair members by the bits of their numbers.
// Every even member among the first 2e gives its sums to its odd neighbour at the start and gets the result back at the
// end. The remaining members are renumbered in order, without gaps.
#pragma once

#include <bit>

#include "coll/plan/schedule.h"
#include "coll/plan/topology.h"

namespace ringwise::coll {

class Doubling {
 public:
  explicit Doubling(const Team& team)
      : team_(team),
        size_(static_cast<int>(std::bit_floor(static_cast<unsigned>(team.size)))),
        extra_(team.size - size_) {
    number_ = is_paired() ? team.index / 2 : team.index - extra_;
  }

  /// Return whether this member gives its sums to its odd neighbour, or takes those of its even neighbour.
  bool gives_away() const { return is_paired() && team_.index % 2 == 0; }
  bool takes_in() const { return is_paired() && team_.index % 2 != 0; }

  /// Return the power of two, its logarithm, and this member's number, which is below the power.
  int size() const { return size_; }
  int rounds() const { return std::countr_zero(static_cast<unsigned>(size_)); }
  int number() const { return number_; }

  /// Returns the rank whose number differs from this one's in bit `round`. is_upper() returns whether this member has
  /// that bit set.
  int partner(int round) const {
    const int other = number_ ^ (1 << round);
    return team_.rank(other < extra_ ? 2 * other + 1 : other + extra_);
  }
  bool is_upper(int round) const { return (number_ >> round & 1) != 0; }

 private:
  bool is_paired() const { return team_.index < 2 * extra_; }

  const Team& team_;
  int size_;
  int extra_;
  int number_;
};

/// Plans a member that gives its sums away: it sends them and receives the result.
inline void give_and_get_back(Piece sums, Piece output, const Team& team, Schedule& schedule) {
  schedule.send(team.after(1), sums, schedule.steps.size());
  schedule.receive(team.after(1), output, Take::Store, schedule.sends.size());
}

}  // namespace ringwise::coll
