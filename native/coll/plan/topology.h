// The topology: which ranks of a group share a host, and the teams that follow from it. An algorithm runs among the
// ranks of a team: all of them, those of this host, or those with this rank's index on their hosts.
#pragma once

#include <vector>

#include "coll/plan/tuning.h"

namespace ringwise::coll {

/// Some ranks of a group in a fixed order, from the view of one of them. Does not own the list.
struct Team {
  int index = 0;  // of this rank in the list
  int size = 1;
  const int* ranks = nullptr;  // by index; null if index and rank are the same

  int rank(int at) const { return ranks == nullptr ? at : ranks[at]; }
  /// Return the rank that is `k` members later, or earlier, in the circle of members.
  int after(int k) const { return rank((index + k) % size); }
  int before(int k) const { return rank((index - k + size) % size); }
};

/// The hosts of a group: the same for all its ranks.
class Hosts {
 public:
  /// `host_of` gives, by rank, a number that ranks of one host have in common.
  explicit Hosts(const std::vector<int>& host_of);

  int size() const { return static_cast<int>(host_.size()); }
  int count() const { return static_cast<int>(ranks_.size()); }
  int host_of(int rank) const { return host_[rank]; }
  /// Returns the number of columns, which is the number of ranks of the smallest host. Column c consists of rank number
  /// c of every host.
  int columns() const { return static_cast<int>(columns_.size()); }

  Team everyone(int rank) const { return {rank, size(), nullptr}; }
  Team on_host_of(int rank) const;
  /// Returns the column of `rank`, whose index on its host must be below columns().
  Team column_of(int rank) const;

 private:
  std::vector<int> host_;                  // by rank: number of its host, in order of the hosts' lowest ranks
  std::vector<int> index_on_host_;         // by rank
  std::vector<std::vector<int>> ranks_;    // by host, ascending
  std::vector<std::vector<int>> columns_;  // by index, in order of the hosts
};

/// A group from the view of one of its ranks. Owns nothing.
struct Topology {
  int rank = 0;
  const Hosts* hosts = nullptr;
  const Tuning* tuning = nullptr;  // null for the built-in rules

  const Tuning& rules() const { return tuning != nullptr ? *tuning : Tuning::built_in(); }

  int size() const { return hosts->size(); }
  Team everyone() const { return hosts->everyone(rank); }
  Team host() const { return hosts->on_host_of(rank); }
  Team column() const { return hosts->column_of(rank); }
};

}  // namespace ringwise::coll
