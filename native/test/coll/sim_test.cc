// Compares simulated times with closed formulas, and tests what the simulator says about contention.
#include <stdexcept>

#include "sim/check.h"
#include "sim/formulas.h"
#include "sim/simulation.h"
#include "test/check.h"
#include "test/coll/virtual_ranks.h"

using namespace ringwise;
using namespace ringwise::test;
using coll::Algorithm;
using coll::Hosts;
using coll::Op;
using coll::Verb;

namespace {

constexpr sim::Cost kNetwork{20'000, 1'000, 0.8};  // 20 µs latency, 1 µs per message, 10 Gbit/s
constexpr sim::Cost kMemory{500, 100, 0.1};
constexpr Verb kCollectives[] = {Verb::AllReduce, Verb::Broadcast, Verb::AllGather, Verb::ReduceScatter,
                                 Verb::Reduce,    Verb::Gather,    Verb::Scatter,   Verb::AllToAll};

Op operation(Verb verb, int ranks, size_t bytes) {
  const bool whole = verb == Verb::AllReduce || verb == Verb::Broadcast || verb == Verb::Reduce;
  return {.verb = verb, .dtype = DType::UInt32, .count = bytes / 4 / (whole ? 1 : ranks)};
}

sim::Outcome all_reduce(const char* name, const Hosts& hosts, size_t bytes, const sim::NetworkCosts& costs) {
  return sim::simulate(operation(Verb::AllReduce, hosts.size(), bytes), *coll::find_algorithm(Verb::AllReduce, name),
                       hosts, costs, false);
}

}  // namespace

TEST("simulated times equal the closed formulas where there is no contention") {
  int compared = 0;
  for (const Verb verb : kCollectives) {
    for (const Algorithm& algorithm : coll::algorithms_of(verb)) {
      for (const int ranks : {2, 3, 4, 5, 7, 8, 13, 15, 16, 31, 32, 64, 128}) {
        for (const size_t part : {64, 4096, 131072}) {
          const size_t bytes = part * ranks;
          const auto expected = sim::formula(verb, algorithm, ranks, bytes, kNetwork);
          if (!expected) continue;
          const Hosts hosts = place_ranks(ranks, 1);
          const auto outcome =
              sim::simulate(operation(verb, ranks, bytes), algorithm, hosts, {kNetwork, kMemory}, false);
          if (std::fabs(outcome.time - *expected) > 1e-9 * *expected) {
            fail(__FILE__, __LINE__,
                 std::string(coll::name_of(verb)) + " by " + algorithm.name + ", " + std::to_string(ranks) +
                     " ranks, " + std::to_string(bytes) + " bytes: " + std::to_string(outcome.time) + " against " +
                     std::to_string(*expected));
          }
          ++compared;
        }
      }
    }
  }
  CHECK(compared > 300);
}

TEST("every plan fits together, for thousands of ranks too, and no link carries more than the algorithm says") {
  for (const int ranks : {300, 1024, 4096}) {
    const Hosts hosts = place_ranks(ranks, 1);
    const size_t bytes = static_cast<size_t>(ranks) * 64;
    for (const char* name : {"recursive-doubling", "halving-doubling", "tree"}) {
      const auto outcome = all_reduce(name, hosts, bytes, {kNetwork, kMemory});
      CHECK(outcome.time > 0);
      CHECK(outcome.between_hosts.total >= 2 * (static_cast<size_t>(ranks) - 1) * bytes / 2);
    }
    CHECK(all_reduce("halving-doubling", hosts, bytes, {kNetwork, kMemory}).between_hosts.max <= 4 * bytes);
  }
  const Hosts hosts = place_ranks(512, 1);
  const size_t bytes = 512 * 64;
  CHECK_EQ(all_reduce("ring", hosts, bytes, {kNetwork, kMemory}).between_hosts.max, 2 * bytes * 511 / 512);
  CHECK_EQ(all_reduce("two-shot", hosts, bytes, {kNetwork, kMemory}).between_hosts.max, 2 * bytes * 511 / 512);
}

TEST("ranks of a host wait for each other at its port, and hierarchical all-reduce waits less") {
  const size_t bytes = 1 << 20;
  const Hosts hosts = place_ranks(32, 8);
  const sim::NetworkCosts costs{kNetwork, kMemory};
  const auto flat = all_reduce("two-shot", hosts, bytes, costs);
  const auto hierarchical = all_reduce("hierarchical", hosts, bytes, costs);
  // Bytes between hosts. two-shot: 24 of the 32 parts of each of the 8 ranks leave the host, in each of two steps.
  // hierarchical: 3/4 of the buffer leaves the host, in each of two steps.
  CHECK_EQ(flat.between_hosts.max, 2 * bytes / 32 * 24 * 8);
  CHECK_EQ(hierarchical.between_hosts.max, 2 * bytes / 4 * 3);
  CHECK(flat.time > flat.between_hosts.max * kNetwork.per_byte);
  CHECK(hierarchical.time < flat.time / 5);
}

TEST("a narrow network between pods slows down what crosses it") {
  const size_t bytes = 1 << 20;
  const Hosts hosts = place_ranks(16, 1);
  const auto at = [&](const char* name, double pod_per_byte) {
    return all_reduce(name, hosts, bytes, {kNetwork, kMemory, 4, pod_per_byte}).time;
  };
  CHECK_EQ(at("ring", kNetwork.per_byte), at("ring", 0));  // between pods the ring needs only the bandwidth of one host
  // The bandwidth of four hosts, a whole pod: hardly a limit.
  CHECK(at("two-shot", kNetwork.per_byte / 4) < at("two-shot", 0) * 1.2);
  // Each of the four hosts of a pod sends 12 of its 15 parts out of the pod, in each of two steps.
  const double through = 2 * kNetwork.per_byte * (4 * 12 * bytes / 16);
  CHECK(at("two-shot", kNetwork.per_byte) > through && at("two-shot", kNetwork.per_byte) < through * 1.1);
}

TEST("handshakes cost as much as messages of their length") {
  const Hosts hosts = place_ranks(8, 1);
  const Op op = operation(Verb::AllReduce, 8, 4096);
  const Algorithm& doubling = *coll::find_algorithm(Verb::AllReduce, "recursive-doubling");
  const auto with = sim::simulate(op, doubling, hosts, {kNetwork, kMemory}, true);
  const auto without = sim::simulate(op, doubling, hosts, {kNetwork, kMemory}, false);
  CHECK_EQ(with.messages, without.messages + 8 * 3);
  CHECK_EQ(with.between_hosts.max, without.between_hosts.max + 3 * 64);
  CHECK(with.time > without.time && with.time < without.time + 4 * kNetwork.occupies(64) + kNetwork.latency);
}

TEST("every algorithm moves the right data among virtual ranks") {
  for (const Verb verb : kCollectives) {
    for (const Algorithm& algorithm : coll::algorithms_of(verb)) {
      for (const int ranks : {2, 5, 16, 33}) {
        const Hosts hosts = place_ranks(ranks, 2);
        if (!algorithm.fits(operation(verb, ranks, 64), {0, &hosts})) continue;
        CHECK_EQ(sim::check(verb, algorithm, hosts, 40), "");
      }
    }
  }
}

TEST("a plan in which ranks wait for each other is refused") {
  const Algorithm crossed{"crossed", [](const Op& op, const coll::Topology& topology, coll::Schedule& schedule) {
                            const int other = 1 - topology.rank;
                            schedule.receive(other, {coll::Region::Output, 0, op.count}, coll::Take::Store, 0);
                            schedule.send(other, {coll::Region::Input, 0, op.count}, 1);
                          }};
  const Algorithm uneven{"uneven", [](const Op& op, const coll::Topology& topology, coll::Schedule& schedule) {
                           if (topology.rank == 0)
                             schedule.send(1, {coll::Region::Input, 0, op.count}, 0);
                           else
                             schedule.receive(0, {coll::Region::Output, 0, op.count - 20}, coll::Take::Store, 0);
                         }};
  const Hosts hosts = place_ranks(2, 1);
  for (const Algorithm& wrong : {crossed, uneven}) {
    std::string text;
    try {
      sim::simulate(operation(Verb::AllReduce, 2, 400), wrong, hosts, {kNetwork, kMemory}, false);
    } catch (const std::logic_error& error) {
      text = error.what();
    }
    CHECK_EQ(text,
             wrong.name == std::string("crossed") ? "rank 0 waits for ever" : "rank 1 got a message of another length");
  }
}

int main() { return run_all(); }
