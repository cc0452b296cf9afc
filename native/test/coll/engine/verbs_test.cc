// Tests every collective except all-reduce and barrier: over shared memory and TCP, for all roots, for even and uneven
// parts, and for sizes that select every algorithm for few ranks.
#include <numeric>

#include "base/half.h"
#include "test/check.h"
#include "test/coll/ranks.h"

using namespace ringwise;
using namespace ringwise::test;
using coll::FailureCode;
using coll::ReduceOp;
using coll::Verb;

namespace {

const std::function<int(int)> kPlacements[] = {one_host, own_host, two_per_host};
constexpr size_t kCounts[] = {0, 1, 3, 64, 1000, 30'001};

Op collective(Verb verb, uint64_t seq, size_t count, const std::vector<int32_t>& input, std::vector<int32_t>& output,
              int root = 0) {
  Op op;
  op.verb = verb;
  op.dtype = DType::Int32;
  op.root = root;
  op.seq = seq;
  op.count = count;
  op.input = reinterpret_cast<const std::byte*>(input.data());
  op.output = reinterpret_cast<std::byte*>(output.data());
  op.timeout_ns = kTimeout;
  return op;
}

/// Returns element `i` of the part that rank `from` has for rank `to`.
int32_t value(int from, int to, size_t i) { return static_cast<int32_t>(from * 1'000'003 + to * 10'007 + i); }

void append_part(std::vector<int32_t>& data, int from, int to, size_t count) {
  for (size_t i = 0; i < count; ++i) data.push_back(value(from, to, i));
}

void check_equal(const std::vector<int32_t>& got, const std::vector<int32_t>& expected, const std::string& what) {
  if (got != expected) fail(__FILE__, __LINE__, what);
}

/// Returns parts of different sizes, some of them empty.
std::vector<size_t> uneven_counts(int size, size_t scale) {
  std::vector<size_t> counts;
  for (int rank = 0; rank < size; ++rank) counts.push_back(rank % 3 == 1 ? 0 : scale * (rank + 1) / 2 + rank % 2);
  return counts;
}

/// Calls f(sizes of the parts, are they uneven) for even and for uneven parts of every size in kCounts. Uneven sizes
/// must be passed in the operation.
void for_parts(int size, const std::function<void(const std::vector<size_t>&, bool)>& f) {
  for (const size_t count : kCounts) {
    f(std::vector<size_t>(size, count), false);
    f(uneven_counts(size, count), true);
  }
}

void for_groups(std::initializer_list<int> sizes, const std::function<void(Rank&)>& body) {
  for (const auto& place : kPlacements) {
    for (const int size : sizes) with_ranks(size, place, body);
  }
}

std::string describe(Rank& rank, const char* what, size_t total, int root = -1) {
  return std::string(what) + " on rank " + std::to_string(rank.rank) + " of " + std::to_string(rank.size) + ", " +
         std::to_string(total) + " elements, root " + std::to_string(root);
}

}  // namespace

TEST("gather brings every part to every root, and touches no output elsewhere") {
  for_groups({2, 3, 7}, [](Rank& rank) {
    uint64_t seq = 0;
    for_parts(rank.size, [&](const std::vector<size_t>& counts, bool uneven) {
      const size_t total = std::accumulate(counts.begin(), counts.end(), size_t{0});
      for (int root = 0; root < rank.size; ++root) {
        std::vector<int32_t> input, expected, output(total, -1);
        append_part(input, rank.rank, root, counts[rank.rank]);
        for (int from = 0; from < rank.size && rank.rank == root; ++from)
          append_part(expected, from, root, counts[from]);
        expected.resize(total, -1);
        Op op = collective(Verb::Gather, seq++, input.size(), input, output, root);
        if (uneven) op.counts = counts.data();
        CHECK_EQ(rank.run(op), "");
        check_equal(output, expected, describe(rank, "gather", total, root));
      }
    });
  });
}

TEST("scatter brings every rank its part from every root") {
  for_groups({2, 3, 7}, [](Rank& rank) {
    uint64_t seq = 0;
    for_parts(rank.size, [&](const std::vector<size_t>& counts, bool uneven) {
      const size_t total = std::accumulate(counts.begin(), counts.end(), size_t{0});
      for (int root = 0; root < rank.size; ++root) {
        std::vector<int32_t> input, expected, output(counts[rank.rank], -1);
        for (int to = 0; to < rank.size && rank.rank == root; ++to) append_part(input, root, to, counts[to]);
        append_part(expected, root, rank.rank, counts[rank.rank]);
        Op op = collective(Verb::Scatter, seq++, output.size(), input, output, root);
        if (uneven) op.counts = counts.data();
        CHECK_EQ(rank.run(op), "");
        check_equal(output, expected, describe(rank, "scatter", total, root));
      }
    });
  });
}

TEST("all-gather brings every part everywhere, also when the input is a part of the output") {
  for_groups({2, 3, 5}, [](Rank& rank) {
    uint64_t seq = 0;
    for_parts(rank.size, [&](const std::vector<size_t>& counts, bool uneven) {
      const size_t total = std::accumulate(counts.begin(), counts.end(), size_t{0});
      for (const bool in_place : {false, true}) {
        std::vector<int32_t> input, expected, output(total, -1);
        append_part(input, rank.rank, 0, counts[rank.rank]);
        for (int from = 0; from < rank.size; ++from) append_part(expected, from, 0, counts[from]);
        Op op = collective(Verb::AllGather, seq++, input.size(), input, output);
        if (uneven) op.counts = counts.data();
        if (in_place) {
          const size_t begin = std::accumulate(counts.begin(), counts.begin() + rank.rank, size_t{0});
          std::copy(input.begin(), input.end(), output.begin() + static_cast<std::ptrdiff_t>(begin));
          op.input = op.output + begin * sizeof(int32_t);
        }
        CHECK_EQ(rank.run(op), "");
        check_equal(output, expected, describe(rank, "allGather", total));
      }
    });
  });
}

TEST("all-to-all brings every part where it belongs") {
  for_groups({2, 3, 5}, [](Rank& rank) {
    uint64_t seq = 0;
    for (const size_t count : kCounts) {
      for (const bool uneven : {false, true}) {
        const auto part = [&](int from, int to) { return uneven ? (from + 2 * to) % 3 * count + to % 2 : count; };
        std::vector<size_t> counts, recv_counts;
        std::vector<int32_t> input, expected;
        for (int peer = 0; peer < rank.size; ++peer) {
          counts.push_back(part(rank.rank, peer));
          recv_counts.push_back(part(peer, rank.rank));
          append_part(input, rank.rank, peer, counts.back());
          append_part(expected, peer, rank.rank, recv_counts.back());
        }
        std::vector<int32_t> output(expected.size(), -1);
        Op op = collective(Verb::AllToAll, seq++, uneven ? 0 : count, input, output);
        if (uneven) {
          op.counts = counts.data();
          op.recv_counts = recv_counts.data();
        }
        CHECK_EQ(rank.run(op), "");
        check_equal(output, expected, describe(rank, "allToAll", expected.size()));
      }
    }
  });
}

TEST("reduce sums at every root, and leaves the other buffers as they were") {
  for_groups({2, 3, 4, 5, 7}, [](Rank& rank) {
    uint64_t seq = 0;
    for (const size_t count : kCounts) {
      for (int root = 0; root < rank.size; ++root) {
        std::vector<int32_t> data, expected(count, 0);
        append_part(data, rank.rank, root, count);
        for (size_t i = 0; i < count; ++i) {
          for (int from = 0; from < rank.size; ++from) expected[i] += value(from, root, i);
        }
        if (rank.rank != root) expected = data;
        CHECK_EQ(rank.run(collective(Verb::Reduce, seq++, count, data, data, root)), "");
        check_equal(data, expected, describe(rank, "reduce", count, root));
      }
    }
  });
}

TEST("reduce-scatter brings every rank its part of the sum, even and uneven") {
  for_groups({2, 3, 5}, [](Rank& rank) {
    uint64_t seq = 0;
    for_parts(rank.size, [&](const std::vector<size_t>& counts, bool uneven) {
      std::vector<int32_t> input, expected(counts[rank.rank], 0), output(counts[rank.rank], -1);
      for (int to = 0; to < rank.size; ++to) append_part(input, rank.rank, to, counts[to]);
      for (size_t i = 0; i < expected.size(); ++i) {
        for (int from = 0; from < rank.size; ++from) expected[i] += value(from, rank.rank, i);
      }
      Op op = collective(Verb::ReduceScatter, seq++, output.size(), input, output);
      if (uneven) op.counts = counts.data();
      CHECK_EQ(rank.run(op), "");
      check_equal(output, expected, describe(rank, "reduceScatter", input.size()));
    });
  });
}

TEST("broadcast brings large buffers from every root, by tree and by chain") {
  for_groups({2, 3, 5}, [](Rank& rank) {
    uint64_t seq = 0;
    for (const size_t count : {16'384, 32'768, 70'001, 300'000}) {
      for (int root = 0; root < rank.size; ++root) {
        std::vector<int32_t> data, expected;
        append_part(data, rank.rank, 0, count);
        append_part(expected, root, 0, count);
        CHECK_EQ(rank.run(collective(Verb::Broadcast, seq++, count, data, data, root)), "");
        check_equal(data, expected, describe(rank, "broadcast", count, root));
      }
    }
  });
}

TEST("reduce rounds halves once, at the end") {
  // float16 cannot hold 2048 + 1: if the sums of some ranks were rounded, the ones would be lost.
  for_groups({4}, [](Rank& rank) {
    uint64_t seq = 0;
    for (const size_t count : {1, 40'001}) {
      const float mine[] = {1, 0, 2048, 1};
      std::vector<uint16_t> data(count, to_half(mine[rank.rank]).bits);
      for (const auto reduce : {ReduceOp::Sum, ReduceOp::Avg}) {
        std::vector<uint16_t> result = data;
        Op op;
        op.verb = Verb::Reduce;
        op.dtype = DType::Float16;
        op.reduce = reduce;
        op.seq = seq++;
        op.count = count;
        op.input = op.output = reinterpret_cast<std::byte*>(result.data());
        op.timeout_ns = kTimeout;
        CHECK_EQ(rank.run(op), "");
        const float expected = reduce == ReduceOp::Sum ? 2050.f : 512.5f;
        if (rank.rank == 0) CHECK_EQ(to_float(Half{result.back()}), expected);
        if (rank.rank != 0) CHECK(result == data);
      }
    }
  });
}

TEST("reduce with a factor per rank scales before it adds") {
  for_groups({3, 5}, [](Rank& rank) {
    for (const size_t count : {7, 50'000}) {
      std::vector<float> data(count, 2.f);
      Op op = all_reduce(data, DType::Float32, count, ReduceOp::PremulSum);
      op.verb = Verb::Reduce;
      op.root = 1;
      op.factor = rank.rank + 1;
      CHECK_EQ(rank.run(op), "");
      CHECK_EQ(data.back(), rank.rank == 1 ? static_cast<float>(rank.size * (rank.size + 1)) : 2.f);
    }
  });
}

TEST("ranks that cut into different parts get an error, before a buffer is touched") {
  for (const auto& place : kPlacements) {
    with_ranks(3, place, [](Rank& rank) {
      const std::vector<size_t> counts = rank.rank == 1 ? std::vector<size_t>{2, 3, 1} : std::vector<size_t>{3, 2, 1};
      const std::vector<int32_t> input(counts[rank.rank], 1);
      std::vector<int32_t> output(6, -1);
      Op op = collective(Verb::AllGather, 0, input.size(), input, output);
      op.counts = counts.data();
      const auto failure = rank.group->run(op);
      CHECK(failure != nullptr && failure->code == FailureCode::Mismatch);
      CHECK(failure != nullptr &&
            failure->text.find("called allGather 6 × int32 in uneven parts ") != std::string::npos);
      check_equal(output, std::vector<int32_t>(6, -1), "output");
    });
  }
}

TEST("equal parts are the same operation, whether they are counted one by one or not") {
  with_ranks(2, one_host, [](Rank& rank) {
    const std::vector<size_t> counts{4, 4};
    std::vector<int32_t> input(4, rank.rank), output(8, -1);
    Op op = collective(Verb::AllGather, 0, 4, input, output);
    if (rank.rank == 0) op.counts = counts.data();
    CHECK_EQ(rank.run(op), "");
    check_equal(output, {0, 0, 0, 0, 1, 1, 1, 1}, "output");
  });
}

TEST("ranks that packed different lists into buffers of one length get an error") {
  for (const auto& place : kPlacements) {
    with_ranks(2, place, [](Rank& rank) {
      std::vector<float> data(8, 1.f);
      Op op = all_reduce(data, DType::Float32, 0);
      op.tag = rank.rank == 0 ? 0x53 : 0x35;
      CHECK_EQ(rank.run(op),
               "rank 0 called allReduce sum 8 × float32 with digest 53 (seq 0) but rank 1 called allReduce sum 8 × "
               "float32 with digest 35 (seq 0)");
      CHECK_EQ(data[7], 1.f);
    });
  }
}

TEST("if a rank sends more than the other expects, both get an error") {
  for (const auto& place : kPlacements) {
    with_ranks(2, place, [](Rank& rank) {
      const std::vector<size_t> counts{2, rank.rank == 0 ? 3u : 2u}, recv_counts{2, 2};
      const std::vector<int32_t> input(5, 1);
      std::vector<int32_t> output(4, -1);
      Op op = collective(Verb::AllToAll, 7, 0, input, output);
      op.counts = counts.data();
      op.recv_counts = recv_counts.data();
      CHECK_EQ(rank.run(op),
               "rank 0 called allToAll 3 × int32 for rank 1 (seq 7) but rank 1 called allToAll 2 × int32 from rank 0 "
               "(seq 7)");
    });
  }
}

int main() { return run_all(); }
