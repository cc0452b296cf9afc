// Chooses the algorithm for an operation over links, by verb, type, bytes, ranks and hosts, with the rules of tuning.h.
// The environment variable RINGWISE_ALGO_<VERB>, such as RINGWISE_ALGO_ALLREDUCE=ring, overrides the rules. All ranks
// must have the same variables and rules; the comparison of signatures finds differences.
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "coll/algo/algorithms.h"
#include "coll/plan/schedule.h"
#include "coll/plan/topology.h"
#include "coll/plan/tuning.h"

namespace ringwise::coll {

/// An algorithm for a verb.
struct Algorithm {
  const char* name;
  void (*plan)(const Op& op, const Topology& topology, Schedule& schedule);
  TeamAllReduce* among = nullptr;  // for an all-reduce that can run among any team
  bool (*fits)(const Op& op, const Topology& topology) = [](const Op&, const Topology&) { return true; };
};

/// Returns the algorithms of a verb. The first one fits every operation.
std::span<const Algorithm> algorithms_of(Verb verb);
/// Returns the algorithm of this name, or null if the verb has none.
const Algorithm* find_algorithm(Verb verb, std::string_view name);
/// Returns the names of a verb's algorithms, such as "two-shot, one-shot, …".
std::string names_of_algorithms(Verb verb);
/// Returns the number of an algorithm in signatures, which is 1 for the verb's first one.
int number_of(Verb verb, const Algorithm& algorithm);

/// The user's choices of algorithms, by verb.
class Choices {
 public:
  Choices() = default;
  /// Reads RINGWISE_ALGO_<VERB> and RINGWISE_TUNING. Throws std::invalid_argument with a sentence.
  static Choices from_environment();

  /// Returns whether the user has named an algorithm for the verb.
  bool has(Verb verb) const { return forced_[static_cast<int>(verb)] != nullptr; }
  const Tuning& tuning() const { return tuning_; }
  /// Returns the user's algorithm for `op` if it fits, otherwise the best by the topology's rules. Between hosts, an
  /// operation whose wire is not full has only one algorithm.
  const Algorithm& choose(const Op& op, const Topology& topology) const;

 private:
  std::array<const Algorithm*, kVerbCount> forced_{};
  Tuning tuning_ = Tuning::built_in();
};

/// Chooses the all-reduce of `bytes` bytes among one rank of each host.
TeamAllReduce* between_hosts(const Op& op, size_t bytes, const Topology& topology);

}  // namespace ringwise::coll
