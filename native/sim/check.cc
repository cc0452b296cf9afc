#include "sim/check.h"

#include <cstdint>
#include <vector>

#include "coll/transport/mem_network.h"

namespace ringwise::sim {

namespace {

using coll::Verb;

constexpr size_t kLinkBytes = 1024;  // that one direction of a link holds; small, so that messages move in pieces
constexpr int kRoot = 0;

/// Returns element i of the contribution of `rank`.
uint32_t value(int rank, size_t i) {
  return static_cast<uint32_t>(rank) * 2654435761u + static_cast<uint32_t>(i) * 40503u;
}

size_t input_parts(Verb verb, size_t size) {
  return verb == Verb::ReduceScatter || verb == Verb::Scatter || verb == Verb::AllToAll ? size : 1;
}

size_t output_parts(Verb verb, size_t size) {
  return verb == Verb::AllGather || verb == Verb::Gather || verb == Verb::AllToAll ? size : 1;
}

/// Returns the expected element i of the output of `rank`. `sums` holds the sums of all inputs, for verbs that reduce.
uint32_t expected(Verb verb, int rank, size_t i, size_t count, const std::vector<uint32_t>& sums) {
  switch (verb) {
    case Verb::AllReduce:
    case Verb::Reduce: return sums[i];
    case Verb::ReduceScatter: return sums[static_cast<size_t>(rank) * count + i];
    case Verb::Broadcast: return value(kRoot, i);
    case Verb::Scatter: return value(kRoot, static_cast<size_t>(rank) * count + i);
    case Verb::AllToAll: return value(static_cast<int>(i / count), static_cast<size_t>(rank) * count + i % count);
    default: return value(static_cast<int>(i / count), i % count);
  }
}

}  // namespace

std::string check(Verb verb, const coll::Algorithm& algorithm, const coll::Hosts& hosts, size_t count) {
  const int size = hosts.size();
  const size_t ranks = static_cast<size_t>(size);
  const bool only_root = verb == Verb::Reduce || verb == Verb::Gather;
  std::vector<std::vector<uint32_t>> inputs(ranks), outputs(ranks);
  std::vector<uint32_t> sums(input_parts(verb, ranks) * count);
  std::vector<coll::Execution> executions(ranks);
  coll::MemNetwork network(size, kLinkBytes);
  coll::Schedule schedule;
  for (int rank = 0; rank < size; ++rank) {
    for (size_t i = 0; i < sums.size(); ++i) {
      inputs[rank].push_back(value(rank, i));
      sums[i] += value(rank, i);
    }
    // A broadcast works in place.
    outputs[rank] = verb == Verb::Broadcast && rank == kRoot ? inputs[rank]
                                                             : std::vector<uint32_t>(output_parts(verb, ranks) * count);
    coll::Op op{.verb = verb, .dtype = DType::UInt32, .root = kRoot, .count = count};
    op.output = reinterpret_cast<std::byte*>(outputs[rank].data());
    op.input = verb == Verb::Broadcast ? op.output : reinterpret_cast<const std::byte*>(inputs[rank].data());
    executions[rank].begin(op, {rank, &hosts}, algorithm);
    schedule.clear();
    algorithm.plan(op, {rank, &hosts}, schedule);
    for (const int peer : schedule.handshake_targets) network.connect(rank, peer);
  }
  for (bool moved = true; moved;) {
    moved = false;
    for (int rank = 0; rank < size; ++rank) moved |= executions[rank].advance(network.links(rank));
  }
  for (int rank = 0; rank < size; ++rank) {
    if (!executions[rank].done()) return "rank " + std::to_string(rank) + " got stuck";
    for (size_t i = 0; i < outputs[rank].size() && (!only_root || rank == kRoot); ++i) {
      if (outputs[rank][i] != expected(verb, rank, i, count, sums)) {
        return "rank " + std::to_string(rank) + " has a wrong element " + std::to_string(i);
      }
    }
  }
  return "";
}

}  // namespace ringwise::sim
