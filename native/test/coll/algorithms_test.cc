// Compares every algorithm of all-reduce, all-gather and all-to-all with the plain result, for many numbers of ranks,
// sizes, types and placements, over links in memory that hold few bytes.
#include <cstring>
#include <limits>

#include "base/half.h"
#include "test/check.h"
#include "test/coll/virtual_ranks.h"

using namespace ringwise;
using namespace ringwise::test;
using namespace ringwise::coll;

namespace {

constexpr int kSizes[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 31, 32, 33, 64};
constexpr size_t kCounts[] = {0, 1, 2, 15, 16, 17, 333, 1024};

template <class T>
std::byte* bytes_of(std::vector<T>& data) {
  return reinterpret_cast<std::byte*>(data.data());
}

std::string describe_run(Verb verb, const Algorithm& algorithm, const Hosts& hosts, size_t count) {
  return std::string(name_of(verb)) + " by " + algorithm.name + ", " + std::to_string(hosts.size()) + " ranks on " +
         std::to_string(hosts.count()) + " hosts, " + std::to_string(count) + " elements";
}

void require(bool condition, const std::string& what) {
  if (!condition) fail(__FILE__, __LINE__, what);
}

/// All-reduces inputs[rank] by every algorithm that fits the operation, in place if `in_place`, and calls
/// check(outputs, what) for each. `what` describes the run, for messages.
template <class T>
void for_all_reduces(std::vector<std::vector<T>> inputs, int per_host, Op op, bool in_place,
                     const std::function<void(const std::vector<std::vector<T>>&, const std::string&)>& check) {
  const int size = static_cast<int>(inputs.size());
  op.verb = Verb::AllReduce;
  op.count = inputs[0].size();
  for (const Algorithm& algorithm : algorithms_of(Verb::AllReduce)) {
    const VirtualRanks ranks{place_ranks(size, per_host), &algorithm};
    if (!algorithm.fits(op, {0, &ranks.hosts})) continue;
    auto sources = inputs;
    auto outputs = in_place ? inputs : std::vector<std::vector<T>>(size, std::vector<T>(op.count));
    std::vector<Op> ops(size, op);
    for (int rank = 0; rank < size; ++rank) {
      ops[rank].input = in_place ? bytes_of(outputs[rank]) : bytes_of(sources[rank]);
      ops[rank].output = bytes_of(outputs[rank]);
    }
    const std::string what = describe_run(op.verb, algorithm, ranks.hosts, op.count);
    require(ranks.run(ops), what + ": got stuck");
    require(in_place || sources == inputs, what + ": touched its input");
    check(outputs, what);
  }
}

std::vector<std::vector<float>> small_numbers(int size, size_t count) {
  std::vector<std::vector<float>> inputs(size, std::vector<float>(count));
  for (int rank = 0; rank < size; ++rank) {
    for (size_t i = 0; i < count; ++i) inputs[rank][i] = static_cast<float>((i * 7 + rank * 5) % 23);
  }
  return inputs;
}

std::vector<float> plain_sum(const std::vector<std::vector<float>>& inputs) {
  std::vector<float> sum(inputs[0].size());
  for (const auto& input : inputs) {
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += input[i];
  }
  return sum;
}

template <class T>
bool same_bits(const std::vector<std::vector<T>>& outputs) {
  return std::all_of(outputs.begin(), outputs.end(), [&](const auto& output) {
    return std::memcmp(output.data(), outputs[0].data(), output.size() * sizeof(T)) == 0;
  });
}

}  // namespace

TEST("every all-reduce gives the plain sum, for any number of ranks, size and placement") {
  for (const int size : kSizes) {
    for (const size_t count : kCounts) {
      const auto inputs = small_numbers(size, count);
      const auto expected = plain_sum(inputs);
      for (const int per_host : {1, 2, 4, 0}) {
        for_all_reduces<float>(
            inputs, per_host, Op{.dtype = DType::Float32}, count % 2 == 0, [&](const auto& outputs, const auto& what) {
              require(std::all_of(outputs.begin(), outputs.end(), [&](const auto& o) { return o == expected; }), what);
            });
      }
    }
  }
}

TEST("parts longer than a segment go round, up and down in pieces") {
  const size_t count = 200'003;
  for (const int size : {2, 3, 5}) {
    const auto inputs = small_numbers(size, count);
    const auto expected = plain_sum(inputs);
    for (const bool in_place : {true, false}) {
      for_all_reduces<float>(
          inputs, 2, Op{.dtype = DType::Float32}, in_place, [&](const auto& outputs, const auto& what) {
            require(std::all_of(outputs.begin(), outputs.end(), [&](const auto& o) { return o == expected; }), what);
          });
    }
  }
}

TEST("all ranks get the same bits, whatever is added") {
  const float odd_ones[] = {1e30f,
                            -1e30f,
                            0.f,
                            -0.f,
                            0.1f,
                            3.1415f,
                            std::numeric_limits<float>::infinity(),
                            std::numeric_limits<float>::quiet_NaN(),
                            -std::numeric_limits<float>::quiet_NaN()};
  for (const ReduceOp reduce : {ReduceOp::Sum, ReduceOp::Min, ReduceOp::Max, ReduceOp::Prod}) {
    for (int size = 2; size <= 9; ++size) {
      std::vector<std::vector<float>> inputs(size, std::vector<float>(300));
      for (int rank = 0; rank < size; ++rank) {
        for (size_t i = 0; i < 300; ++i) inputs[rank][i] = odd_ones[(i * (rank + 1) + i / 9 + rank) % 9];
      }
      for (const int per_host : {1, 2, 0}) {
        for_all_reduces<float>(inputs, per_host, Op{.dtype = DType::Float32, .reduce = reduce}, true,
                               [&](const auto& outputs, const auto& what) { require(same_bits(outputs), what); });
      }
    }
  }
}

TEST("halves are summed in float32 and rounded once") {
  for (const DType dtype : {DType::Float16, DType::BFloat16}) {
    for (const int size : {2, 3, 4, 7, 8, 13}) {
      // One rank has a large value, and each other rank has half a unit in its last place. If sums were rounded after
      // each addition, these small values would be lost.
      const float large = 256.f;
      const float tiny = dtype == DType::Float16 ? 0.125f : 1.f;
      const auto encode = [&](float x) { return dtype == DType::Float16 ? to_half(x).bits : to_bfloat(x).bits; };
      std::vector<std::vector<uint16_t>> inputs(size, std::vector<uint16_t>(150, encode(tiny)));
      inputs[size / 2].assign(150, encode(large));
      const uint16_t expected = encode(large + tiny * static_cast<float>(size - 1));
      for (const int per_host : {1, 2, 0}) {
        for_all_reduces<uint16_t>(
            inputs, per_host, Op{.dtype = dtype}, size % 2 == 0, [&](const auto& outputs, const auto& what) {
              require(std::all_of(outputs.begin(), outputs.end(),
                                  [&](const auto& o) { return std::count(o.begin(), o.end(), expected) == 150; }),
                      what);
            });
      }
    }
  }
}

TEST("averages divide once, and scaled sums scale every input") {
  for (const int size : {1, 2, 3, 4, 6, 8, 11}) {
    const auto inputs = small_numbers(size, 100);
    auto expected = plain_sum(inputs);
    for (const int per_host : {1, 2, 0}) {
      for_all_reduces<float>(inputs, per_host, Op{.dtype = DType::Float32, .reduce = ReduceOp::Avg}, true,
                             [&](const auto& outputs, const auto& what) {
                               for (size_t i = 0; i < 100; ++i)
                                 require(outputs[size - 1][i] == expected[i] / static_cast<float>(size), "avg " + what);
                             });
      for_all_reduces<float>(inputs, per_host,
                             Op{.dtype = DType::Float32, .reduce = ReduceOp::PremulSum, .factor = 0.5}, true,
                             [&](const auto& outputs, const auto& what) {
                               for (size_t i = 0; i < 100; ++i)
                                 require(outputs[0][i] == expected[i] * 0.5f, "premulSum " + what);
                             });
    }
  }
}

TEST("all-gathers and all-to-alls bring every part to its place") {
  for (const Verb verb : {Verb::AllGather, Verb::AllToAll}) {
    for (const Algorithm& algorithm : algorithms_of(verb)) {
      for (const int size : kSizes) {
        const VirtualRanks ranks{place_ranks(size, 1), &algorithm};
        for (const size_t count : {0, 1, 17, 100}) {
          const size_t inputs_each = verb == Verb::AllGather ? count : count * size;
          std::vector<std::vector<int32_t>> inputs(size), outputs(size, std::vector<int32_t>(count * size, -1));
          std::vector<Op> ops(size, Op{.verb = verb, .dtype = DType::Int32, .count = count});
          const auto value = [&](int from, size_t i) { return static_cast<int32_t>(from * 100'000 + i); };
          for (int rank = 0; rank < size; ++rank) {
            for (size_t i = 0; i < inputs_each; ++i) inputs[rank].push_back(value(rank, i));
            ops[rank].input = bytes_of(inputs[rank]);
            ops[rank].output = bytes_of(outputs[rank]);
          }
          const std::string what = describe_run(verb, algorithm, ranks.hosts, count);
          require(ranks.run(ops), what + ": got stuck");
          for (int rank = 0; rank < size; ++rank) {
            for (size_t i = 0; i < count * size; ++i) {
              const int from = static_cast<int>(i / count);
              const size_t at = verb == Verb::AllGather ? i % count : rank * count + i % count;
              if (outputs[rank][i] != value(from, at)) return fail(__FILE__, __LINE__, what);
            }
          }
        }
      }
    }
  }
}

TEST("Bruck's all-gather takes parts of any sizes") {
  const Algorithm& bruck = *find_algorithm(Verb::AllGather, "bruck");
  for (const int size : {2, 3, 5, 8, 13}) {
    const VirtualRanks ranks{place_ranks(size, 1), &bruck};
    std::vector<size_t> counts(size);
    size_t total = 0;
    for (int rank = 0; rank < size; ++rank) total += counts[rank] = rank % 3 == 1 ? 0 : 10 * rank + 1;
    std::vector<std::vector<int32_t>> inputs(size), outputs(size, std::vector<int32_t>(total, -1));
    std::vector<int32_t> expected;
    std::vector<Op> ops(size, Op{.verb = Verb::AllGather, .dtype = DType::Int32});
    for (int rank = 0; rank < size; ++rank) {
      inputs[rank].assign(counts[rank], rank);
      expected.insert(expected.end(), counts[rank], rank);
      ops[rank].count = counts[rank];
      ops[rank].counts = counts.data();
      ops[rank].input = bytes_of(inputs[rank]);
      ops[rank].output = bytes_of(outputs[rank]);
    }
    CHECK(ranks.run(ops));
    for (const auto& output : outputs) CHECK(output == expected);
  }
}

TEST("ranks that disagree keep their data, also if a rank communicates with only some of the others") {
  for (const Algorithm& algorithm : algorithms_of(Verb::AllReduce)) {
    for (const int odd_one : {0, 3, 6}) {
      const Hosts hosts = place_ranks(7, 2);
      MemNetwork network(7, 4096);
      std::vector<Execution> ranks(7);
      std::vector<std::vector<float>> data(7, std::vector<float>(500, 7.f));
      for (int rank = 0; rank < 7; ++rank) {
        for (int peer = 0; peer < rank; ++peer) network.connect(rank, peer);
        Op op{.dtype = DType::Float32, .count = rank == odd_one ? 499u : 500u};
        op.input = op.output = bytes_of(data[rank]);
        ranks[rank].begin(op, {rank, &hosts}, algorithm);
      }
      int told = 0;
      std::vector<char> failed(7);
      for (bool moved = true; moved;) {
        moved = false;
        for (int rank = 0; rank < 7; ++rank) {
          if (failed[rank]) continue;
          try {
            moved |= ranks[rank].advance(network.links(rank));
          } catch (const Failure& failure) {
            CHECK(failure.code == FailureCode::Mismatch);
            ++told;
            failed[rank] = 1;
          }
        }
      }
      CHECK(told >= 2);
      for (int rank = 0; rank < 7; ++rank) {
        CHECK(!ranks[rank].done());
        require(data[rank] == std::vector<float>(500, 7.f), std::string(algorithm.name) + ": a buffer was touched");
      }
    }
  }
}

int main() { return run_all(); }
