#include "coll/choose.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <numeric>
#include <stdexcept>
#include <string>

#include "coll/algo/sums.h"
#include "coll/signature.h"

namespace ringwise::coll {

namespace {

// What a link between hosts carries in the time of its latency: 10 to 100 KiB on real ones. Below, a second message costs
// more than sending everything to everybody.
constexpr size_t kLatencyBytes = 16 * 1024;
// Every message costs its sender about a tenth of the latency. With more ranks, algorithms with few messages win.
constexpr int kManyRanks = 32;
// One message of this size costs about as much as a message.
constexpr size_t kSmallBytes = 2 * 1024;
// Buffers of this size fill a core's cache.
constexpr size_t kCacheBytes = 1024 * 1024;
// From here on bytes count more than steps: of a broadcast or reduce, and of the mean part of a gather or scatter.
constexpr size_t kLargeBytes = 64 * 1024;
constexpr size_t kLargePartBytes = 8 * 1024;
// Up to here the root of a gather or scatter reaches every rank in about as many steps as a tree has.
constexpr int kFewRanks = 4;

template <TeamAllReduce* all_reduce>
void among_everyone(const Op& op, const Topology& topology, Schedule& schedule) {
  const Piece output{Place::Output, 0, op.count};
  const Piece sums = contribution(op, {Place::Input, 0, op.count}, schedule);
  if (topology.size() > 1) {
    all_reduce(op, sums, output, topology.everyone(), schedule);
  } else {
    finish(op, output, widened(op, sums, schedule), schedule, 0);
  }
  if (op.count == 0) return greet_everyone(topology.rank, topology.size(), schedule);
  schedule.greet_partners();
}

void host_by_host(const Op& op, const Topology& topology, Schedule& schedule) {
  const Piece sums = contribution(op, {Place::Input, 0, op.count}, schedule);
  hierarchical_all_reduce(op, sums, {Place::Output, 0, op.count}, topology, schedule);
  schedule.greet_partners();
}

bool has_hosts(const Op& op, const Topology& topology) { return topology.hosts->count() > 1 && op.count > 0; }

template <void (*plan)(const Op&, int, int, Schedule&)>
void by_rank(const Op& op, const Topology& topology, Schedule& schedule) {
  plan(op, topology.rank, topology.size(), schedule);
}

/// Bruck's all-to-all moves parts of one size: a rank does not know the sizes of those that only pass through it.
bool has_even_parts(const Op& op, const Topology&) { return op.counts == nullptr && op.recv_counts == nullptr; }

void send(const Op& op, const Topology&, Schedule& schedule) {
  schedule.greets.push_back(op.root);
  schedule.send(op.root, {Place::Input, 0, op.count}, 0);
}

void receive(const Op& op, const Topology&, Schedule& schedule) {
  schedule.greeted_by.push_back(op.root);
  schedule.receive(op.root, {Place::Output, 0, op.count}, Take::Store, 0);
}

constexpr Algorithm kAllReduce[] = {
    {"two-shot", among_everyone<two_shot_all_reduce>, two_shot_all_reduce},
    {"one-shot", among_everyone<one_shot_all_reduce>, one_shot_all_reduce},
    {"recursive-doubling", among_everyone<recursive_doubling_all_reduce>, recursive_doubling_all_reduce},
    {"halving-doubling", among_everyone<halving_doubling_all_reduce>, halving_doubling_all_reduce},
    {"ring", among_everyone<ring_all_reduce>, ring_all_reduce},
    {"tree", among_everyone<tree_all_reduce>, tree_all_reduce},
    {"hierarchical", host_by_host, nullptr, has_hosts},
};
constexpr Algorithm kBroadcast[] = {{"tree", by_rank<tree_broadcast>}, {"chain", by_rank<chain_broadcast>}};
constexpr Algorithm kAllGather[] = {{"direct", by_rank<direct_all_gather>}, {"bruck", by_rank<bruck_all_gather>}};
constexpr Algorithm kReduceScatter[] = {{"direct", by_rank<direct_reduce_scatter>}};
constexpr Algorithm kSend[] = {{"direct", send}};
constexpr Algorithm kRecv[] = {{"direct", receive}};
constexpr Algorithm kBarrier[] = {{"direct", by_rank<greeting_barrier>}};
constexpr Algorithm kReduce[] = {{"tree", by_rank<tree_reduce>}, {"two-shot", by_rank<two_shot_reduce>}};
constexpr Algorithm kGather[] = {{"direct", by_rank<direct_gather>}, {"tree", by_rank<tree_gather>}};
constexpr Algorithm kScatter[] = {{"direct", by_rank<direct_scatter>}, {"tree", by_rank<tree_scatter>}};
constexpr Algorithm kAllToAll[] = {{"direct", by_rank<pairwise_all_to_all>}, {"bruck", by_rank<bruck_all_to_all>, nullptr, has_even_parts}};

/// By Verb.
constexpr std::span<const Algorithm> kAlgorithms[kVerbCount] = {
    kAllReduce, kBroadcast, kAllGather, kReduceScatter, kSend, kRecv, kBarrier, kReduce, kGather, kScatter, kAllToAll};

/// Bytes of the buffer that has a part of every rank.
size_t bytes_of_parts(const Op& op, int size) {
  const size_t elements = op.counts != nullptr ? std::accumulate(op.counts, op.counts + size, size_t{0}) : op.count * size;
  return elements * byte_size(op.dtype);
}

/// The one of this name; checked by the compiler.
template <size_t N>
consteval const Algorithm* named(const Algorithm (&list)[N], std::string_view name) {
  for (const Algorithm& algorithm : list) {
    if (algorithm.name == name) return &algorithm;
  }
  throw "no such algorithm";
}

/// The best all-reduce of `n` ranks that have links of one kind with each other. `wide` where sums of several ranks are
/// twice as long on their way as what is summed.
const Algorithm* best_all_reduce(size_t bytes, size_t n, bool wide) {
  if (n > kManyRanks) {
    return bytes <= kSmallBytes ? named(kAllReduce, "recursive-doubling") : named(kAllReduce, "halving-doubling");
  }
  if (n == 2 && (!wide || bytes <= kSmallBytes)) {
    // One exchange of everything is as many bytes as two of halves, and half the latency. But between sizes where latency
    // counts and those that fit no cache anyway, a rank that only sums half of them is the faster one.
    const bool halves = bytes >= kCacheBytes / 2 && bytes < 8 * kCacheBytes;
    return halves ? named(kAllReduce, "ring") : named(kAllReduce, "recursive-doubling");
  }
  // One-shot: latency + (n−1)·S. Two-shot: 2·latency + 2·S·(n−1)/n.
  if (bytes * (n - 1) * (n - 2) <= kLatencyBytes * n && bytes <= kLatencyBytes) return named(kAllReduce, "one-shot");
  return named(kAllReduce, "two-shot");
}

const Algorithm* best_all_reduce(const Op& op, const Topology& topology) {
  const size_t bytes = op.count * byte_size(op.dtype);
  const Hosts& hosts = *topology.hosts;
  const bool several_each = hosts.count() > 1 && hosts.count() < hosts.size();
  if (several_each && bytes > kSmallBytes) return named(kAllReduce, "hierarchical");
  return best_all_reduce(bytes, static_cast<size_t>(topology.size()), is_half(op.dtype));
}

const Algorithm* best(const Op& op, const Topology& topology) {
  const int size = topology.size();
  const size_t bytes = op.count * byte_size(op.dtype);
  const bool large = size > 2 && bytes >= kLargeBytes;
  const bool many_small = size > kManyRanks && bytes <= kSmallBytes;
  const bool reach_each = size <= kFewRanks || bytes_of_parts(op, size) >= kLargePartBytes * size;
  switch (op.verb) {
    case Verb::AllReduce: return best_all_reduce(op, topology);
    case Verb::Broadcast: return large ? named(kBroadcast, "chain") : named(kBroadcast, "tree");
    case Verb::Reduce: return large ? named(kReduce, "two-shot") : named(kReduce, "tree");
    case Verb::Gather: return reach_each ? named(kGather, "direct") : named(kGather, "tree");
    case Verb::Scatter: return reach_each ? named(kScatter, "direct") : named(kScatter, "tree");
    case Verb::AllGather: return many_small ? named(kAllGather, "bruck") : named(kAllGather, "direct");
    case Verb::AllToAll: return many_small && has_even_parts(op, topology) ? named(kAllToAll, "bruck") : named(kAllToAll, "direct");
    default: return &algorithms_of(op.verb).front();
  }
}

}  // namespace

std::span<const Algorithm> algorithms_of(Verb verb) { return kAlgorithms[static_cast<int>(verb)]; }

const Algorithm* find_algorithm(Verb verb, std::string_view name) {
  for (const Algorithm& algorithm : algorithms_of(verb)) {
    if (algorithm.name == name) return &algorithm;
  }
  return nullptr;
}

int number_of(Verb verb, const Algorithm& algorithm) { return static_cast<int>(&algorithm - algorithms_of(verb).data()) + 1; }

Choices Choices::from_environment() {
  Choices choices;
  for (int verb = 0; verb < kVerbCount; ++verb) {
    std::string variable = std::string("RINGWISE_ALGO_") + name_of(static_cast<Verb>(verb));
    std::transform(variable.begin() + 14, variable.end(), variable.begin() + 14, [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    const char* name = std::getenv(variable.c_str());
    if (name == nullptr || *name == '\0') continue;
    choices.forced_[verb] = find_algorithm(static_cast<Verb>(verb), name);
    if (choices.forced_[verb] != nullptr) continue;
    std::string known;
    for (const Algorithm& algorithm : kAlgorithms[verb]) known += (known.empty() ? "" : ", ") + std::string(algorithm.name);
    throw std::invalid_argument(variable + ": there is no algorithm \"" + name + "\"; expected one of " + known);
  }
  return choices;
}

const Algorithm& Choices::choose(const Op& op, const Topology& topology) const {
  const Algorithm* forced = forced_[static_cast<int>(op.verb)];
  return forced != nullptr && forced->fits(op, topology) ? *forced : *best(op, topology);
}

TeamAllReduce* between_hosts(const Op& op, size_t bytes, int hosts) {
  const Algorithm* algorithm = best_all_reduce(bytes, static_cast<size_t>(hosts), is_half(op.dtype));
  const bool takes_sums = algorithm != named(kAllReduce, "one-shot") || !is_half(op.dtype);
  return takes_sums ? algorithm->among : two_shot_all_reduce;
}

}  // namespace ringwise::coll
