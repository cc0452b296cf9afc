// Tests collectives on the board, with buffers in the arenas of all ranks, of some, or of none. The sizes take every
// path through the board. Several operations follow each other, so that posts and slots are used again.
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "coll/shm/board_execution.h"
#include "test/check.h"
#include "test/coll/ranks.h"

using namespace ringwise;
using namespace ringwise::test;
using coll::ReduceOp;
using coll::Verb;

namespace {

constexpr size_t kCounts[] = {0, 1, 23, 25, 1000, 5000, 150'003};

/// The ranks whose buffers lie in arenas: none, all, or those with odd numbers.
enum class Placing { Nobody, Everybody, Odd };
constexpr Placing kPlacings[] = {Placing::Nobody, Placing::Everybody, Placing::Odd};

/// An array of floats, in private memory or in the arena of its rank. If the system provides no arenas, all arrays are
/// in private memory.
class Array {
 public:
  Array(Rank& rank, Placing placing, size_t count) : count_(count) {
    const bool shared = placing == Placing::Everybody || (placing == Placing::Odd && rank.rank % 2 == 1);
    if (shared && rank.group->arena()) {
      arena_ = rank.group->arena();
      data_ = reinterpret_cast<float*>(arena_->allocate(count * sizeof(float)));
    } else {
      private_.resize(count + 1);
      data_ = private_.data();
    }
  }
  ~Array() {
    if (arena_) arena_->release(bytes());
  }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;

  template <class F>
  void fill(F&& value) {
    for (size_t i = 0; i < count_; ++i) data_[i] = value(i);
  }
  template <class F>
  void check(const char* what, F&& expected) const {
    for (size_t i = 0; i < count_; ++i) {
      if (data_[i] == expected(i)) continue;
      return fail(__FILE__, __LINE__,
                  std::string(what) + ", element " + std::to_string(i) + " of " + std::to_string(count_) + ": " +
                      std::to_string(data_[i]) + " instead of " + std::to_string(expected(i)));
    }
  }
  std::byte* bytes() { return reinterpret_cast<std::byte*>(data_); }

 private:
  size_t count_;
  std::shared_ptr<coll::Arena> arena_;
  std::vector<float> private_;
  float* data_;
};

/// Returns element `i` of the input of `rank`.
float value(int rank, size_t i) { return static_cast<float>((i * 7 + static_cast<size_t>(rank) * 131) % 1021); }

/// Runs every collective, and checks its results. The last rank is the root.
class Calls {
 public:
  Calls(Rank& rank, Placing placing) : rank_(rank), placing_(placing) {}

  void all(size_t count) {
    for (const ReduceOp reduce : {ReduceOp::Sum, ReduceOp::Max, ReduceOp::Avg, ReduceOp::PremulSum})
      all_reduce(count, reduce);
    for (const ReduceOp reduce : {ReduceOp::Sum, ReduceOp::PremulSum}) {
      this->reduce(count, reduce);
      reduce_scatter(count, reduce);
    }
    broadcast(count);
    gather(Verb::AllGather, count);
    gather(Verb::Gather, count);
    scatter(count);
    all_to_all(count);
  }

 private:
  int n() const { return rank_.size; }

  void call(Verb verb, size_t count, Array& input, Array& output, ReduceOp reduce = ReduceOp::Sum) {
    Op op;
    op.verb = verb;
    op.dtype = DType::Float32;
    op.reduce = reduce;
    op.root = n() - 1;
    op.seq = seq_++;
    op.count = count;
    op.factor = rank_.rank + 1;
    op.input = input.bytes();
    op.output = output.bytes();
    op.timeout_ns = kTimeout;
    CHECK_EQ(rank_.run(op), "");
  }

  float reduced(ReduceOp reduce, size_t i) const {
    double result = reduce == ReduceOp::Max ? value(0, i) : 0;
    for (int rank = 0; rank < n(); ++rank) {
      const double each = value(rank, i);
      if (reduce == ReduceOp::Max)
        result = std::max(result, each);
      else
        result += reduce == ReduceOp::PremulSum ? each * (rank + 1) : each;
    }
    return static_cast<float>(reduce == ReduceOp::Avg ? static_cast<float>(result) / static_cast<float>(n()) : result);
  }

  void all_reduce(size_t count, ReduceOp reduce) {
    Array data(rank_, placing_, count);
    data.fill([&](size_t i) { return value(rank_.rank, i); });
    call(Verb::AllReduce, count, data, data, reduce);
    data.check("all-reduce", [&](size_t i) { return reduced(reduce, i); });
  }

  void reduce(size_t count, ReduceOp reduce) {
    Array data(rank_, placing_, count);
    data.fill([&](size_t i) { return value(rank_.rank, i); });
    call(Verb::Reduce, count, data, data, reduce);
    data.check("reduce", [&](size_t i) { return rank_.rank == n() - 1 ? reduced(reduce, i) : value(rank_.rank, i); });
  }

  void reduce_scatter(size_t count, ReduceOp reduce) {
    Array input(rank_, placing_, count * n()), output(rank_, placing_, count);
    input.fill([&](size_t i) { return value(rank_.rank, i); });
    call(Verb::ReduceScatter, count, input, output, reduce);
    output.check("reduce-scatter", [&](size_t i) { return reduced(reduce, count * rank_.rank + i); });
  }

  void broadcast(size_t count) {
    Array data(rank_, placing_, count);
    data.fill([&](size_t i) { return value(rank_.rank, i); });
    call(Verb::Broadcast, count, data, data);
    data.check("broadcast", [&](size_t i) { return value(n() - 1, i); });
  }

  void gather(Verb verb, size_t count) {
    Array input(rank_, placing_, count), output(rank_, placing_, count * n());
    input.fill([&](size_t i) { return value(rank_.rank, i); });
    output.fill([](size_t) { return -1.f; });
    call(verb, count, input, output);
    const bool gets = verb == Verb::AllGather || rank_.rank == n() - 1;
    output.check("gather", [&](size_t i) { return gets ? value(static_cast<int>(i / count), i % count) : -1.f; });
  }

  void scatter(size_t count) {
    Array input(rank_, placing_, count * n()), output(rank_, placing_, count);
    input.fill([&](size_t i) { return value(rank_.rank, i); });
    call(Verb::Scatter, count, input, output);
    output.check("scatter", [&](size_t i) { return value(n() - 1, count * rank_.rank + i); });
  }

  void all_to_all(size_t count) {
    Array input(rank_, placing_, count * n()), output(rank_, placing_, count * n());
    input.fill([&](size_t i) { return value(rank_.rank, i); });
    call(Verb::AllToAll, count, input, output);
    output.check("all-to-all",
                 [&](size_t i) { return value(static_cast<int>(i / count), count * rank_.rank + i % count); });
  }

  Rank& rank_;
  const Placing placing_;
  uint64_t seq_ = 0;
};

}  // namespace

TEST("every collective gives exact results wherever the buffers lie") {
  for (const int size : {2, 3, 4}) {
    for (const Placing placing : kPlacings) {
      with_ranks(size, one_host, [&](Rank& rank) {
        Calls calls(rank, placing);
        for (const size_t count : kCounts) calls.all(count);
      });
    }
  }
}

TEST("an arena reuses released memory, and sets it to zero") {
  const auto arena = coll::Arena::create();
  if (!arena) return;
  std::byte* first = arena->allocate(10'000);
  std::byte* second = arena->allocate(1);
  CHECK(arena->offset_of(first, 10'000).has_value());
  CHECK(!arena->offset_of(reinterpret_cast<const std::byte*>(&second), 1).has_value());
  first[0] = first[9'999] = std::byte{7};
  arena->release(first);
  std::byte* third = arena->allocate(12'000);
  CHECK(third == first);
  CHECK(third[0] == std::byte{0} && third[9'999] == std::byte{0});
  arena->release(second);
  arena->release(third);
  CHECK(arena->allocate(4096 * 4) == first);
}

/// One end of a board, without a group. The rank never sleeps.
struct End {
  coll::BoardContext context;
  std::atomic<uint32_t> sleeping{0};
  std::unique_ptr<coll::BoardExecution> execution;
  float* data = nullptr;

  /// Starts an allReduce of `data` and advances it as far as that is possible now.
  void all_reduce(size_t count) {
    Op op;
    op.verb = Verb::AllReduce;
    op.dtype = DType::Float32;
    op.count = count;
    op.input = op.output = reinterpret_cast<std::byte*>(data);
    execution->begin(op);
    while (execution->advance()) continue;
  }
};

TEST("a rank that goes on after the others have given up writes to none of their memory") {
  for (const size_t count : {1'000, 150'003}) {
    End ends[2];
    ends[0].context.board = coll::Board::create(2);
    ends[1].context.board = coll::Board::attach(Fd(dup(ends[0].context.board.descriptor())), 2);
    for (End& end : ends) {
      end.context.arena = coll::Arena::create();
      if (!end.context.arena) return;
      end.data = reinterpret_cast<float*>(end.context.arena->allocate(count * sizeof(float)));
      std::fill_n(end.data, count, 1.F);
      for (End& each : ends) end.context.sleeping.push_back(&each.sleeping);
    }
    for (int rank = 0; rank < 2; ++rank) {
      ends[rank].context.arenas = coll::PeerArenas(2);
      ends[rank].context.arenas.attach(1 - rank, Fd(dup(ends[1 - rank].context.arena->descriptor())));
      ends[rank].execution = std::make_unique<coll::BoardExecution>(ends[rank].context, rank);
    }
    End &early = ends[0], &late = ends[1];
    CHECK(early.execution->exposed().empty());
    early.all_reduce(count);
    const auto exposed = early.execution->exposed();
    CHECK(exposed.data() == reinterpret_cast<std::byte*>(early.data) && exposed.size() == count * sizeof(float));
    early.context.arena->isolate(exposed.data(), exposed.size());
    CHECK(early.data[0] == 1 && early.data[count - 1] == 1);
    std::fill_n(early.data, count, 7.F);
    late.all_reduce(count);
    CHECK(!late.execution->done());
    CHECK_EQ(late.data[count - 1], 2);  // the part that the late rank reduces, from what the early one had
    CHECK_EQ(std::count(early.data, early.data + count, 7.F), static_cast<std::ptrdiff_t>(count));
    early.context.arena->release(reinterpret_cast<std::byte*>(early.data));
  }
}

TEST("ranks that cannot map the arenas of all others do without arenas, and so do the others") {
  long pages = 0;  // the size of this process's address space
  std::ifstream("/proc/self/statm") >> pages;
  rlimit before{};
  getrlimit(RLIMIT_AS, &before);
  // Enough for the arenas of both ranks and one mapping of the other's.
  const rlimit limit{static_cast<rlim_t>(pages) * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + 3 * coll::Arena::span() +
                         coll::Arena::span() / 2,
                     before.rlim_max};
  setrlimit(RLIMIT_AS, &limit);
  with_ranks(2, one_host, [](Rank& rank) {
    CHECK(rank.group->arena() == nullptr);
    std::vector<float> data(100'000, static_cast<float>(rank.rank + 1));
    CHECK_EQ(rank.run(all_reduce(data, DType::Float32, 0)), "");
    CHECK(data.front() == 3 && data.back() == 3);
  });
  setrlimit(RLIMIT_AS, &before);
}

TEST("an arena outlives its group") {
  std::shared_ptr<coll::Arena> arenas[2];
  std::byte* blocks[2] = {};
  with_ranks(2, one_host, [&](Rank& rank) {
    arenas[rank.rank] = rank.group->arena();
    if (arenas[rank.rank]) blocks[rank.rank] = arenas[rank.rank]->allocate(100);
  });
  for (int rank = 0; rank < 2; ++rank) {
    if (blocks[rank] != nullptr) blocks[rank][99] = std::byte{1};
  }
}

int main() { return ringwise::test::run_all(); }
