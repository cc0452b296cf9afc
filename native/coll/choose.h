// Which algorithm carries out an operation over links: by verb, bytes, ranks and hosts, by thresholds that were measured
// or, for many hosts, simulated (docs/performance.md). RINGWISE_ALGO_<VERB>, as RINGWISE_ALGO_ALLREDUCE=ring, takes the
// choice away; all ranks must say the same, which their signatures check.
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "coll/algo/algorithms.h"
#include "coll/schedule.h"
#include "coll/topology.h"

namespace ringwise::coll {

/// One way to carry out a verb.
struct Algorithm {
  const char* name;
  void (*plan)(const Op& op, const Topology& topology, Schedule& schedule);
  TeamAllReduce* among = nullptr;  // of an all-reduce that runs among any team
  bool (*fits)(const Op& op, const Topology& topology) = [](const Op&, const Topology&) { return true; };
};

/// All of a verb; the first fits everywhere.
std::span<const Algorithm> algorithms_of(Verb verb);
/// Null where the verb has none of this name.
const Algorithm* find_algorithm(Verb verb, std::string_view name);
/// 1 for the verb's first one, and so on: for signatures.
int number_of(Verb verb, const Algorithm& algorithm);

/// What the user has decided, by verb.
class Choices {
 public:
  Choices() = default;
  /// Reads RINGWISE_ALGO_<VERB>. Throws std::invalid_argument with the known names.
  static Choices from_environment();

  bool has(Verb verb) const { return forced_[static_cast<int>(verb)] != nullptr; }
  /// The user's algorithm for `op` where it fits; otherwise the best.
  const Algorithm& choose(const Op& op, const Topology& topology) const;

 private:
  std::array<const Algorithm*, kVerbCount> forced_{};
};

/// The all-reduce of `bytes` among one rank of each of `hosts` hosts.
TeamAllReduce* between_hosts(const Op& op, size_t bytes, int hosts);

}  // namespace ringwise::coll
