// All-reduces that travel as bfloat16 between hosts: how far off they are, that all ranks get the same bits, and that
// ranks which differ in it are told.
#include <cmath>
#include <random>
#include <string>

#include "base/half.h"
#include "coll/choose.h"
#include "test/check.h"
#include "test/virtual_ranks.h"

using namespace ringwise;
using namespace ringwise::test;
using namespace ringwise::coll;

namespace {

std::byte* bytes_of(std::vector<float>& data) { return reinterpret_cast<std::byte*>(data.data()); }

using Buffers = std::vector<std::vector<float>>;

Buffers drawn(int size, size_t count) {
  std::mt19937 random(static_cast<unsigned>(size * 1000 + static_cast<int>(count)));
  std::normal_distribution<float> normal;
  Buffers buffers(size, std::vector<float>(count));
  for (auto& buffer : buffers) {
    for (float& value : buffer) value = normal(random);
  }
  return buffers;
}

/// All-reduces in place by what is chosen for a wire of bfloat16; false if the ranks got stuck.
bool reduce(Buffers& buffers, const Hosts& hosts, ReduceOp op) {
  std::vector<Op> ops;
  for (auto& buffer : buffers) {
    Op& one = ops.emplace_back(Op{.verb = Verb::AllReduce, .dtype = DType::Float32, .reduce = op, .wire = Wire::BFloat16, .count = buffer.size()});
    one.input = one.output = bytes_of(buffer);
  }
  const VirtualRanks ranks{hosts, &Choices().choose(ops[0], {0, &hosts})};
  return ranks.run(ops);
}

}  // namespace

TEST("results are off by roundings to bfloat16 only, and have the same bits on all ranks") {
  for (const int size : {2, 3, 4, 6, 8, 9}) {
    for (const int per_host : {1, 2, 0}) {
      for (const size_t count : {1, 2, 15, 16, 17, 333, 5000}) {
        for (const ReduceOp op : {ReduceOp::Sum, ReduceOp::Avg}) {
          const Buffers inputs = drawn(size, count);
          Buffers outputs = inputs;
          const Hosts hosts = place_ranks(size, per_host);
          CHECK(reduce(outputs, hosts, op));
          for (const auto& output : outputs) CHECK(output == outputs[0]);
          for (size_t i = 0; i < count; ++i) {
            double sum = 0, terms = 0;
            for (const auto& input : inputs) {
              sum += static_cast<double>(input[i]);
              terms += std::abs(static_cast<double>(input[i]));
            }
            const double scale = op == ReduceOp::Avg ? 1.0 / size : 1.0;
            const double bound = hosts.count() > 1 ? (terms + std::abs(sum)) / 250 : terms / 1e5;
            CHECK(std::abs(static_cast<double>(outputs[0][i]) - sum * scale) <= bound * scale);
          }
        }
      }
    }
  }
}

TEST("half the bytes travel between hosts, and full precision inside one") {
  const Hosts apart = place_ranks(2, 1), together = place_ranks(3, 3);
  Buffers buffers(2, std::vector<float>(64, 1.f + 1.f / 4096));
  CHECK(reduce(buffers, apart, ReduceOp::Sum));
  CHECK(buffers[0] == std::vector<float>(64, 2.f));  // its bits beyond bfloat16 are gone
  Schedule plans[2];
  for (const Wire wire : {Wire::Full, Wire::BFloat16}) {
    const Op op{.verb = Verb::AllReduce, .dtype = DType::Float32, .wire = wire, .count = 64};
    find_algorithm(Verb::AllReduce, "hierarchical")->plan(op, {0, &apart}, plans[static_cast<int>(wire)]);
  }
  size_t halves = 0;
  for (const Send& send : plans[1].sends) halves += send.piece.half ? send.piece.count : 1'000'000;
  CHECK(halves == 64);  // half of them on the way to their owner, half as results
  Buffers near(3, std::vector<float>(64, 1.f + 1.f / 4096));
  CHECK(reduce(near, together, ReduceOp::Sum));
  CHECK(near[0] == std::vector<float>(64, 3.f + 3.f / 4096));
}

TEST("ranks that differ in the wire are told, and keep their data") {
  const Hosts hosts = place_ranks(2, 1);
  MemNetwork network(2, 4096);
  network.connect(0, 1);
  std::vector<Execution> ranks(2);
  Buffers data(2, std::vector<float>(100, 7.f));
  for (int rank = 0; rank < 2; ++rank) {
    Op op{.verb = Verb::AllReduce, .dtype = DType::Float32, .wire = rank == 0 ? Wire::Full : Wire::BFloat16, .count = 100};
    op.input = op.output = bytes_of(data[rank]);
    ranks[rank].begin(op, {rank, &hosts}, Choices().choose(op, {rank, &hosts}));
  }
  std::string text;
  for (int turn = 0; turn < 10 && text.empty(); ++turn) {
    for (int rank = 0; rank < 2; ++rank) {
      try {
        ranks[rank].advance(network.links(rank));
      } catch (const Failure& failure) {
        text = failure.text;
      }
    }
  }
  CHECK(text.find("rank 0 called allReduce sum 100 × float32 (seq 0)") != std::string::npos);
  CHECK(text.find("rank 1 called allReduce sum 100 × float32 over bfloat16 (seq 0)") != std::string::npos);
  for (const auto& buffer : data) CHECK(buffer == std::vector<float>(100, 7.f));
}

int main() { return run_all(); }
