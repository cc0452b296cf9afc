// Tests all-reduces whose values are rounded for the transfer between hosts: the size of the errors, equal bits on all
// ranks, the effect of residuals, and that ranks with different wires get an error.
#include <algorithm>
#include <cmath>
#include <random>
#include <string>

#include "base/half.h"
#include "coll/plan/choose.h"
#include "test/check.h"
#include "test/coll/virtual_ranks.h"

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

/// All-reduces in place with the algorithm that is chosen for the wire; returns false if the ranks got stuck.
bool reduce(Buffers& buffers, const Hosts& hosts, Wire wire, ReduceOp op, Buffers* residuals = nullptr) {
  std::vector<Op> ops;
  for (size_t rank = 0; rank < buffers.size(); ++rank) {
    Op& one = ops.emplace_back(Op{
        .verb = Verb::AllReduce, .dtype = DType::Float32, .reduce = op, .wire = wire, .count = buffers[rank].size()});
    one.input = one.output = bytes_of(buffers[rank]);
    if (residuals != nullptr) one.residual = (*residuals)[rank].data();
  }
  const VirtualRanks ranks{hosts, &Choices().choose(ops[0], {0, &hosts})};
  return ranks.run(ops);
}

double sum_at(const Buffers& buffers, size_t i) {
  double sum = 0;
  for (const auto& buffer : buffers) sum += static_cast<double>(buffer[i]);
  return sum;
}

/// The last count gives each of up to 3 owners a part that is longer than one chunk of the algorithm.
constexpr size_t kCounts[] = {1, 2, 15, 16, 17, 333, 5000, 100'001};

}  // namespace

TEST("results are off by the wire's roundings only, and have the same bits on all ranks") {
  for (const int size : {2, 3, 4, 6, 8, 9}) {
    for (const int per_host : {1, 2, 0}) {
      for (const size_t count : kCounts) {
        for (const Wire wire : {Wire::BFloat16, Wire::Int8}) {
          if (count > 5000 && size > 4) continue;
          const ReduceOp op = count % 2 == 0 ? ReduceOp::Sum : ReduceOp::Avg;
          const Buffers inputs = drawn(size, count);
          Buffers outputs = inputs;
          const Hosts hosts = place_ranks(size, per_host);
          CHECK(reduce(outputs, hosts, wire, op));
          for (const auto& output : outputs) CHECK(output == outputs[0]);
          double largest = 0;
          for (const auto& input : inputs) {
            for (const float value : input) largest = std::max(largest, std::abs(static_cast<double>(value)));
          }
          for (size_t i = 0; i < count; ++i) {
            double terms = 0;
            for (const auto& input : inputs) terms += std::abs(static_cast<double>(input[i]));
            const double sum = sum_at(inputs, i);
            const double scale = op == ReduceOp::Avg ? 1.0 / size : 1.0;
            // int8 loses half a step for the values of each host, and half a step for the sum, which is at most `size`
            // times the largest value.
            const double rounding = wire == Wire::Int8 ? 2 * size * largest / 127 : (terms + std::abs(sum)) / 250;
            const double bound = hosts.count() > 1 ? rounding : terms / 1e5;
            CHECK(std::abs(static_cast<double>(outputs[0][i]) - sum * scale) <= bound * scale);
          }
        }
      }
    }
  }
}

TEST("results and residuals together are the values, whatever the hosts") {
  for (const int size : {2, 3, 5, 6}) {
    for (const int per_host : {1, 2, 0}) {
      for (const size_t count : {1, 33, 1000, 70'000}) {
        const Hosts hosts = place_ranks(size, per_host);
        Buffers residuals(size, std::vector<float>(count));
        std::vector<double> delivered(count), expected(count);
        for (int step = 0; step < 3; ++step) {
          Buffers buffers = drawn(size, count);
          for (auto& buffer : buffers) buffer[step % count] *= 100;
          for (size_t i = 0; i < count; ++i) expected[i] += sum_at(buffers, i);
          CHECK(reduce(buffers, hosts, Wire::Int8, ReduceOp::Sum, &residuals));
          for (size_t i = 0; i < count; ++i) delivered[i] += static_cast<double>(buffers[0][i]);
        }
        for (size_t i = 0; i < count; ++i) CHECK(std::abs(delivered[i] + sum_at(residuals, i) - expected[i]) < 3e-4);
        const bool is_rounded = hosts.count() > 1;
        if (count > 1) CHECK_EQ(residuals != Buffers(size, std::vector<float>(count)), is_rounded);
      }
    }
  }
}

TEST("over a thousand steps, error feedback delivers values that rounding alone loses") {
  const Hosts hosts = place_ranks(3, 1);
  const size_t count = 200;
  const auto farthest = [&](bool with_residuals) {
    Buffers residuals(3, std::vector<float>(count));
    std::vector<double> delivered(count), expected(count);
    for (int step = 0; step < 1000; ++step) {
      // About a quarter of a step, because the largest value of the block is 0.4.
      Buffers buffers(3, std::vector<float>(count, 0.001f));
      for (auto& buffer : buffers) {
        for (size_t i = 0; i < count; i += 32) buffer[i] = 0.4f;
      }
      for (size_t i = 0; i < count; ++i) expected[i] += sum_at(buffers, i);
      CHECK(reduce(buffers, hosts, Wire::Int8, ReduceOp::Sum, with_residuals ? &residuals : nullptr));
      for (size_t i = 0; i < count; ++i) delivered[i] += static_cast<double>(buffers[0][i]);
    }
    double most = 0;
    for (size_t i = 0; i < count; ++i) most = std::max(most, std::abs(delivered[i] - expected[i]));
    return most;
  };
  CHECK(farthest(true) < 0.03);  // half a step for the values of each of two ranks, and half a step for the sum
  CHECK(farthest(false) > 1);    // of a total of 3: the values that two ranks round never arrive
}

TEST("a NaN reaches all ranks, and the residuals stay finite") {
  const Hosts hosts = place_ranks(2, 1);
  for (const size_t at : {5, 90}) {  // in the part of rank 0, then in the part of rank 1
    Buffers buffers = drawn(2, 128), residuals(2, std::vector<float>(128, 1.f / 1024));
    buffers[0][at] = std::nanf("");
    CHECK(reduce(buffers, hosts, Wire::Int8, ReduceOp::Avg, &residuals));
    for (const auto& buffer : buffers) {
      for (size_t i = 0; i < 128; ++i) CHECK_EQ(std::isnan(buffer[i]), i / 32 == at / 32);
    }
    for (const auto& residual : residuals) {
      for (const float value : residual) CHECK(std::isfinite(value));
    }
    CHECK_EQ(residuals[0][at], 1.f / 1024);
  }
}

TEST("half or a quarter of the bytes travel between hosts, and full precision inside one") {
  const Hosts apart = place_ranks(2, 1), together = place_ranks(3, 3);
  Buffers buffers(2, std::vector<float>(64, 1.f + 1.f / 4096));
  CHECK(reduce(buffers, apart, Wire::BFloat16, ReduceOp::Sum));
  CHECK(buffers[0] == std::vector<float>(64, 2.f));  // the bits that bfloat16 cannot hold are lost
  size_t words[kWireCount] = {};
  for (const Wire wire : {Wire::Full, Wire::BFloat16, Wire::Int8}) {
    Schedule plan;
    const Op op{.verb = Verb::AllReduce, .dtype = DType::Float32, .wire = wire, .count = 1 << 20};
    find_algorithm(Verb::AllReduce, "hierarchical")->plan(op, {0, &apart}, plan);
    for (const Send& send : plan.sends) words[static_cast<int>(wire)] += send.piece.count;
  }
  CHECK_EQ(words[0], size_t{1} << 20);  // one half as values to their owner, the other half as results
  CHECK_EQ(words[1], size_t{1} << 19);
  CHECK_EQ(words[2], (size_t{1} << 18) + (size_t{1} << 13));  // one word for four bytes, and the scales
  for (const Wire wire : {Wire::BFloat16, Wire::Int8}) {
    Buffers near(3, std::vector<float>(64, 1.f + 1.f / 4096));
    Buffers residuals(3, std::vector<float>(64, 1.f));
    CHECK(reduce(near, together, wire, ReduceOp::Sum, &residuals));
    CHECK(near[0] == std::vector<float>(64, 3.f + 3.f / 4096));
    CHECK(residuals[0] == std::vector<float>(64, 1.f));
  }
}

TEST("ranks that differ in the wire get an error, and keep their data") {
  const Hosts hosts = place_ranks(2, 1);
  MemNetwork network(2, 4096);
  network.connect(0, 1);
  std::vector<Execution> ranks(2);
  Buffers data(2, std::vector<float>(100, 7.f)), residuals = data;
  for (int rank = 0; rank < 2; ++rank) {
    Op op{.verb = Verb::AllReduce,
          .dtype = DType::Float32,
          .wire = rank == 0 ? Wire::BFloat16 : Wire::Int8,
          .count = 100};
    op.input = op.output = bytes_of(data[rank]);
    if (op.wire == Wire::Int8) op.residual = residuals[rank].data();
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
  CHECK(text.find("rank 0 called allReduce sum 100 × float32 over bfloat16 (seq 0)") != std::string::npos);
  CHECK(text.find("rank 1 called allReduce sum 100 × float32 over int8 (seq 0)") != std::string::npos);
  for (const auto& buffers : {data, residuals}) {
    for (const auto& buffer : buffers) CHECK(buffer == std::vector<float>(100, 7.f));
  }
}

int main() { return run_all(); }
