#include "sim/formulas.h"

#include <algorithm>
#include <bit>
#include <string_view>

#include "coll/transport/link.h"

namespace ringwise::sim {

namespace {

using coll::Verb;

// In bytes. Equal to the constants in the algorithms' files: all_reduce_ring.cc, all_reduce_tree.cc,
// broadcast_chain.cc.
constexpr size_t kRingSegment = 128 * 1024;
constexpr size_t kTreeSegment = 64 * 1024;
constexpr size_t kChainChunk = 128 * 1024;

/// An operation of n ranks with S bytes, and the costs of the network.
struct Case {
  int n;
  size_t S;
  Cost cost;

  int rounds() const { return std::bit_width(static_cast<unsigned>(n)) - 1; }  // ⌊log2 n⌋
  bool is_power() const { return std::has_single_bit(static_cast<unsigned>(n)); }
  bool has_even_parts(int parts) const { return S % (coll::kAlign * static_cast<size_t>(parts)) == 0; }
  Time latency() const { return cost.latency; }
  /// Returns how long a message occupies a port. message() adds the latency: the time until its end arrives.
  Time port(size_t bytes) const { return cost.occupies((bytes + coll::kAlign - 1) / coll::kAlign * coll::kAlign); }
  Time message(size_t bytes) const { return latency() + port(bytes); }
  /// Returns the time to send the inputs and results of paired ranks, if n is no power of two. They are on the longest
  /// path only if data of one pair reaches another pair through all rounds, that is, if more than half of the members
  /// of these rounds stand for a pair (see coll/algo/doubling.h). Otherwise there is no closed form.
  std::optional<Time> pairing() const {
    if (is_power()) return 0;
    const int power = 1 << rounds();
    return n - power > power / 2 ? std::optional(2 * message(S)) : std::nullopt;
  }
};

using Result = std::optional<Time>;

Result ring(const Case& c) {
  if (!c.has_even_parts(c.n)) return {};
  const size_t part = c.S / static_cast<size_t>(c.n);
  const size_t segments = (part + kRingSegment - 1) / kRingSegment;
  if (part % segments != 0 || (segments > 1 && part % kRingSegment != 0)) return {};
  const Time t = c.port(part / segments), whole = static_cast<Time>(segments) * t;
  return (2 * (c.n - 1) - 1) * std::max(whole, c.latency() + t) + whole + c.latency();
}

Result halving_doubling(const Case& c) {
  const int power = 1 << c.rounds();
  if (!c.has_even_parts(power) || !c.pairing()) return {};
  Time time = *c.pairing();
  for (int parts = 2; parts <= power; parts *= 2) time += 2 * c.message(c.S / static_cast<size_t>(parts));
  return time;
}

/// Returns the time of a binary tree, if the tree is full and the buffer is one segment.
Result binary_tree(const Case& c) {
  const int levels = std::bit_width(static_cast<unsigned>(c.n)) - 1;
  if (!std::has_single_bit(static_cast<unsigned>(c.n + 1)) || c.S > kTreeSegment) return {};
  return 2 * levels * (c.latency() + 2 * c.port(c.S));
}

Result chain(const Case& c) {
  if (c.S > kChainChunk && c.S % kChainChunk != 0) return {};
  const size_t chunks = std::max<size_t>(1, c.S / kChainChunk);
  return (c.n - 1) * c.message(c.S / chunks) + static_cast<Time>(chunks - 1) * c.port(c.S / chunks);
}

/// Returns the time of a direct exchange: every rank sends parts of S/n bytes to all others.
Result direct(const Case& c) { return c.latency() + (c.n - 1) * c.port(c.S / static_cast<size_t>(c.n)); }

Result bruck_all_gather(const Case& c) {
  Time time = 0;
  for (int distance = 1; distance < c.n; distance *= 2) {
    time += c.message(static_cast<size_t>(std::min(distance, c.n - distance)) * (c.S / static_cast<size_t>(c.n)));
  }
  return time;
}

Result bruck_all_to_all(const Case& c) {
  Time time = 0;
  for (int bit = 1; bit < c.n; bit *= 2) {
    size_t moving = 0;
    for (int distance = 1; distance < c.n; ++distance) moving += (distance & bit) != 0;
    time += c.message(moving * (c.S / static_cast<size_t>(c.n)));
  }
  return time;
}

/// Returns the time of a binomial tree in which the root exchanges blocks of 1, 2, 4, … ranks' parts.
Result binomial_blocks(const Case& c) {
  if (!c.is_power()) return {};
  Time time = 0;
  for (int ranks = 1; ranks < c.n; ranks *= 2)
    time += c.message(static_cast<size_t>(ranks) * (c.S / static_cast<size_t>(c.n)));
  return time;
}

Result binomial_tree(const Case& c) { return c.is_power() ? Result(c.rounds() * c.message(c.S)) : Result(); }

Result two_shot(const Case& c) { return c.has_even_parts(c.n) ? Result(2 * *direct(c)) : Result(); }

Result all_reduce(std::string_view name, const Case& c) {
  if (name == "one-shot") return c.latency() + (c.n - 1) * c.port(c.S);
  if (name == "two-shot") return two_shot(c);
  if (name == "recursive-doubling") return c.pairing() ? Result(c.rounds() * c.message(c.S) + *c.pairing()) : Result();
  if (name == "halving-doubling") return halving_doubling(c);
  if (name == "ring") return ring(c);
  if (name == "tree") return binary_tree(c);
  return {};
}

}  // namespace

std::optional<Time> formula(Verb verb, const coll::Algorithm& algorithm, int ranks, size_t bytes, const Cost& cost) {
  const Case c{ranks, bytes, cost};
  const std::string_view name = algorithm.name;
  if (ranks < 2) return {};
  switch (verb) {
    case Verb::AllReduce: return all_reduce(name, c);
    case Verb::AllGather: return name == "bruck" ? bruck_all_gather(c) : direct(c);
    case Verb::AllToAll: return name == "bruck" ? bruck_all_to_all(c) : direct(c);
    case Verb::ReduceScatter: return direct(c);
    case Verb::Broadcast: return name == "chain" ? chain(c) : binomial_tree(c);
    case Verb::Reduce: return name == "tree" ? binomial_tree(c) : two_shot(c);
    case Verb::Gather:
    case Verb::Scatter: return name == "tree" ? binomial_blocks(c) : direct(c);
    default: return {};
  }
}

}  // namespace ringwise::sim
