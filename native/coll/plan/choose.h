// Which algorithm carries out an operation over links: by verb, bytes, ranks and hosts, as the rules of tuning.h say.
// RINGWISE_ALGO_<VERB>, as RINGWISE_ALGO_ALLREDUCE=ring, takes the choice away. All ranks must say the same, and have the
// same rules, which their signatures check.
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "coll/algo/algorithms.h"
#include "coll/plan/schedule.h"
#include "coll/plan/topology.h"
#include "coll/plan/tuning.h"

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
/// "two-shot, one-shot, …"
std::string names_of_algorithms(Verb verb);
/// 1 for the verb's first one, and so on: for signatures.
int number_of(Verb verb, const Algorithm& algorithm);

/// What the user has decided, by verb.
class Choices {
 public:
  Choices() = default;
  /// Reads RINGWISE_ALGO_<VERB> and RINGWISE_TUNING. Throws std::invalid_argument with a sentence.
  static Choices from_environment();

  bool has(Verb verb) const { return forced_[static_cast<int>(verb)] != nullptr; }
  const Tuning& tuning() const { return tuning_; }
  /// The user's algorithm for `op` where it fits; otherwise the best by the topology's rules. Between hosts a wire that
  /// is not full leaves no choice.
  const Algorithm& choose(const Op& op, const Topology& topology) const;

 private:
  std::array<const Algorithm*, kVerbCount> forced_{};
  Tuning tuning_ = Tuning::built_in();
};

/// The all-reduce of `bytes` among one rank of each host.
TeamAllReduce* between_hosts(const Op& op, size_t bytes, const Topology& topology);

}  // namespace ringwise::coll
