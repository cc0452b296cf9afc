#include "coll/plan/choose.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <numeric>
#include <stdexcept>
#include <string>

#include "coll/algo/sums.h"
#include "coll/handshake/signature.h"

namespace ringwise::coll {

namespace {

template <TeamAllReduce* all_reduce>
void among_everyone(const Op& op, const Topology& topology, Schedule& schedule) {
  const Piece output{Region::Output, 0, op.count};
  const Piece sums = contribution(op, {Region::Input, 0, op.count}, schedule);
  if (topology.size() > 1) {
    all_reduce(op, sums, output, topology.everyone(), schedule);
  } else {
    finish(op, output, widened(op, sums, schedule), schedule, 0);
  }
  if (op.count == 0) return handshake_all(topology.rank, topology.size(), schedule);
  schedule.handshake_partners();
}

void host_by_host(const Op& op, const Topology& topology, Schedule& schedule) {
  const Piece sums = contribution(op, {Region::Input, 0, op.count}, schedule);
  hierarchical_all_reduce(op, sums, {Region::Output, 0, op.count}, topology, schedule);
  schedule.handshake_partners();
}

/// Returns whether the operation moves data between several hosts.
bool spans_hosts(const Op& op, const Topology& topology) { return topology.hosts->count() > 1 && op.count > 0; }

template <void (*plan)(const Op&, int, int, Schedule&)>
void by_rank(const Op& op, const Topology& topology, Schedule& schedule) {
  plan(op, topology.rank, topology.size(), schedule);
}

/// Returns whether all parts have the same size. Bruck's all-to-all needs this, because a rank does not know the sizes
/// of parts that only pass through it.
bool has_even_parts(const Op& op, const Topology&) { return op.counts == nullptr && op.recv_counts == nullptr; }

void send(const Op& op, const Topology&, Schedule& schedule) {
  schedule.handshake_targets.push_back(op.root);
  schedule.send(op.root, {Region::Input, 0, op.count}, 0);
}

void receive(const Op& op, const Topology&, Schedule& schedule) {
  schedule.handshake_sources.push_back(op.root);
  schedule.receive(op.root, {Region::Output, 0, op.count}, Take::Store, 0);
}

constexpr Algorithm kAllReduce[] = {
    {"two-shot", among_everyone<two_shot_all_reduce>, two_shot_all_reduce},
    {"one-shot", among_everyone<one_shot_all_reduce>, one_shot_all_reduce},
    {"recursive-doubling", among_everyone<recursive_doubling_all_reduce>, recursive_doubling_all_reduce},
    {"halving-doubling", among_everyone<halving_doubling_all_reduce>, halving_doubling_all_reduce},
    {"ring", among_everyone<ring_all_reduce>, ring_all_reduce},
    {"tree", among_everyone<tree_all_reduce>, tree_all_reduce},
    {"hierarchical", host_by_host, nullptr, spans_hosts},
};
constexpr Algorithm kBroadcast[] = {{"tree", by_rank<tree_broadcast>}, {"chain", by_rank<chain_broadcast>}};
constexpr Algorithm kAllGather[] = {{"direct", by_rank<direct_all_gather>}, {"bruck", by_rank<bruck_all_gather>}};
constexpr Algorithm kReduceScatter[] = {{"direct", by_rank<direct_reduce_scatter>}};
constexpr Algorithm kSend[] = {{"direct", send}};
constexpr Algorithm kRecv[] = {{"direct", receive}};
constexpr Algorithm kBarrier[] = {{"direct", by_rank<handshake_barrier>}};
constexpr Algorithm kReduce[] = {{"tree", by_rank<tree_reduce>}, {"two-shot", by_rank<two_shot_reduce>}};
constexpr Algorithm kGather[] = {{"direct", by_rank<direct_gather>}, {"tree", by_rank<tree_gather>}};
constexpr Algorithm kScatter[] = {{"direct", by_rank<direct_scatter>}, {"tree", by_rank<tree_scatter>}};
constexpr Algorithm kAllToAll[] = {{"direct", by_rank<pairwise_all_to_all>},
                                   {"bruck", by_rank<bruck_all_to_all>, nullptr, has_even_parts}};

/// The algorithms by verb.
constexpr std::span<const Algorithm> kAlgorithms[kVerbCount] = {
    kAllReduce, kBroadcast, kAllGather, kReduceScatter, kSend, kRecv, kBarrier, kReduce, kGather, kScatter, kAllToAll};

/// Returns the algorithm of this name; an unknown name does not compile.
template <size_t N>
consteval const Algorithm* named(const Algorithm (&list)[N], std::string_view name) {
  for (const Algorithm& algorithm : list) {
    if (algorithm.name == name) return &algorithm;
  }
  throw "no such algorithm";
}

/// Returns the message size that the tuning rules use, in bytes: the whole buffer, or the mean part. For an allToAll
/// with uneven parts, of which each rank knows only its own, the size is 0; just one algorithm fits it.
size_t bytes_of(const Op& op, int size) {
  if (op.counts == nullptr || op.verb == Verb::AllToAll) return op.count * byte_size(op.dtype);
  return std::accumulate(op.counts, op.counts + size, size_t{0}) * byte_size(op.dtype) / static_cast<size_t>(size);
}

}  // namespace

std::string names_of_algorithms(Verb verb) {
  std::string names;
  for (const Algorithm& algorithm : algorithms_of(verb))
    names += (names.empty() ? "" : ", ") + std::string(algorithm.name);
  return names;
}

std::span<const Algorithm> algorithms_of(Verb verb) { return kAlgorithms[static_cast<int>(verb)]; }

const Algorithm* find_algorithm(Verb verb, std::string_view name) {
  for (const Algorithm& algorithm : algorithms_of(verb)) {
    if (algorithm.name == name) return &algorithm;
  }
  return nullptr;
}

int number_of(Verb verb, const Algorithm& algorithm) {
  return static_cast<int>(&algorithm - algorithms_of(verb).data()) + 1;
}

Choices Choices::from_environment() {
  Choices choices;
  choices.tuning_ = Tuning::from_environment();
  for (int verb = 0; verb < kVerbCount; ++verb) {
    std::string variable = std::string("RINGWISE_ALGO_") + name_of(static_cast<Verb>(verb));
    std::transform(variable.begin() + 14, variable.end(), variable.begin() + 14,
                   [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    const char* name = std::getenv(variable.c_str());
    if (name == nullptr || *name == '\0') continue;
    choices.forced_[verb] = find_algorithm(static_cast<Verb>(verb), name);
    if (choices.forced_[verb] != nullptr) continue;
    throw std::invalid_argument(variable + ": there is no algorithm \"" + name + "\"; expected one of " +
                                names_of_algorithms(static_cast<Verb>(verb)));
  }
  return choices;
}

const Algorithm& Choices::choose(const Op& op, const Topology& topology) const {
  if (op.wire != Wire::Full && spans_hosts(op, topology)) return *named(kAllReduce, "hierarchical");
  const Algorithm* forced = forced_[static_cast<int>(op.verb)];
  const auto fits = [&](const Algorithm& algorithm) { return algorithm.fits(op, topology); };
  if (forced != nullptr && fits(*forced)) return *forced;
  const Hosts& hosts = *topology.hosts;
  const bool several_each = hosts.count() > 1 && hosts.count() < hosts.size();
  const Algorithm* best = topology.rules().find(
      {op.verb, is_narrow(op.dtype), several_each, hosts.size(), bytes_of(op, hosts.size())}, fits);
  return best != nullptr ? *best : algorithms_of(op.verb).front();
}

TeamAllReduce* between_hosts(const Op& op, size_t bytes, const Topology& topology) {
  if (op.wire != Wire::Full) return compressed_all_reduce;
  const auto takes_sums = [&](const Algorithm& algorithm) {
    return algorithm.among != nullptr && (algorithm.among != one_shot_all_reduce || !is_narrow(op.dtype));
  };
  return topology.rules()
      .find({Verb::AllReduce, is_narrow(op.dtype), false, topology.hosts->count(), bytes}, takes_sums)
      ->among;
}

}  // namespace ringwise::coll
