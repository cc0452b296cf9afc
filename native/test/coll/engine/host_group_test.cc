// Tests groups of ranks, on one host and on several: exact results, the order of operations, and what errors say about
// ranks that disagree, wait or are lost.
#include "test/check.h"
#include "test/coll/ranks.h"

#include "base/time/clock.h"

using namespace ringwise;
using namespace ringwise::test;
using coll::FailureCode;
using coll::ReduceOp;
using coll::Verb;

namespace {

const std::pair<const char*, std::function<int(int)>> kPlacements[] = {
    {"one host", one_host}, {"a host each", own_host}, {"two per host", two_per_host}};

Op transfer(Verb verb, std::vector<float>& data, int peer, uint64_t seq) {
  Op op;
  op.verb = verb;
  op.dtype = DType::Float32;
  op.root = peer;
  op.seq = seq;
  op.count = data.size();
  op.input = op.output = reinterpret_cast<std::byte*>(data.data());
  op.timeout_ns = kTimeout;
  return op;
}

}  // namespace

TEST("all-reduce is exact for sizes around every boundary") {
  for (const auto& [name, place] : kPlacements) {
    for (const int size : {2, 3, 4}) {
      with_ranks(size, place, [&](Rank& rank) {
        uint64_t seq = 0;
        for (const size_t count : {0, 1, 2, 3, 15, 16, 17, 511, 512, 513, 1000, 100003}) {
          std::vector<float> data(count);
          for (size_t i = 0; i < count; ++i) data[i] = static_cast<float>((i + rank.rank) % 17);
          CHECK_EQ(rank.run(all_reduce(data, DType::Float32, seq++)), "");
          int wrong = 0;
          for (size_t i = 0; i < count; ++i) {
            float expected = 0;
            for (int r = 0; r < size; ++r) expected += static_cast<float>((i + r) % 17);
            wrong += data[i] != expected;
          }
          CHECK_EQ(wrong, 0);
        }
      });
    }
  }
}

TEST("all-reduces over narrow wires are exact for values that fit, and else off by what the residuals hold") {
  for (const auto& [name, place] : kPlacements) {
    std::vector<std::vector<float>> residuals(4);
    std::vector<float> delivered, expected;
    with_ranks(4, place, [&](Rank& rank) {
      uint64_t seq = 0;
      for (const size_t count : {1, 33, 1000, 150'001}) {
        for (const coll::Wire wire : {coll::Wire::BFloat16, coll::Wire::Int8}) {
          std::vector<float> data(count);
          for (size_t i = 0; i < count; ++i) data[i] = static_cast<float>((i + rank.rank) % 17);
          Op op = all_reduce(data, DType::Float32, seq++);
          op.wire = wire;
          CHECK_EQ(rank.run(op), "");
          int wrong = 0;
          for (size_t i = 0; i < count; ++i) {
            float sum = 0;
            for (int r = 0; r < 4; ++r) sum += static_cast<float>((i + r) % 17);
            wrong += data[i] != sum;
          }
          CHECK_EQ(wrong, 0);
        }
      }
      std::vector<float> data(1000, 0.1f), residual(1000);
      for (size_t i = 0; i < data.size(); ++i) data[i] += 0.001f * static_cast<float>(i);
      if (rank.rank == 0) expected = data;
      Op op = all_reduce(data, DType::Float32, seq++);
      op.wire = coll::Wire::Int8;
      op.residual = residual.data();
      CHECK_EQ(rank.run(op), "");
      residuals[rank.rank] = residual;
      if (rank.rank == 0) delivered = data;
    });
    for (size_t i = 0; i < 1000; ++i) {
      float together = delivered[i];
      for (const auto& residual : residuals) together += residual[i];
      CHECK(std::abs(together - 4 * expected[i]) < 1e-5f);
    }
  }
}

TEST("broadcast, all-gather and reduce-scatter give the right results") {
  for (const auto& [name, place] : kPlacements) {
    with_ranks(4, place, [&](Rank& rank) {
      const size_t count = 70'001;
      for (int root = 0; root < 4; ++root) {
        std::vector<float> data(count, rank.rank == root ? 42.f + root : -1.f);
        Op op = all_reduce(data, DType::Float32, root);
        op.verb = Verb::Broadcast;
        op.root = root;
        CHECK_EQ(rank.run(op), "");
        CHECK(std::all_of(data.begin(), data.end(), [&](float x) { return x == 42.f + root; }));
      }
      std::vector<float> input(count, static_cast<float>(rank.rank)), output(count * 4);
      Op gather = all_reduce(input, DType::Float32, 4);
      gather.verb = Verb::AllGather;
      gather.output = reinterpret_cast<std::byte*>(output.data());
      CHECK_EQ(rank.run(gather), "");
      for (int r = 0; r < 4; ++r) CHECK_EQ(output[count * r + count - 1], static_cast<float>(r));

      std::vector<float> part(count);
      Op scatter = all_reduce(output, DType::Float32, 5);
      scatter.verb = Verb::ReduceScatter;
      scatter.count = count;
      scatter.output = reinterpret_cast<std::byte*>(part.data());
      CHECK_EQ(rank.run(scatter), "");
      CHECK(std::all_of(part.begin(), part.end(), [&](float x) { return x == 4.f * rank.rank; }));
    });
  }
}

TEST("queued and inline operations keep their order") {
  with_ranks(3, one_host, [&](Rank& rank) {
    std::vector<float> data(5000, 1.f);
    for (uint64_t seq = 0; seq < 200; ++seq) {
      std::fill(data.begin(), data.end(), 1.f);
      if (seq % 3 == 0) {
        CHECK_EQ(rank.run(all_reduce(data, DType::Float32, seq)), "");
      } else {
        CHECK(rank.finish(rank.group->start(all_reduce(data, DType::Float32, seq))) == nullptr);
      }
      CHECK_EQ(data[4999], 3.f);
    }
  });
}

TEST("ranks that disagree get the same error, and keep their data") {
  for (const auto& [name, place] : kPlacements) {
    with_ranks(2, place, [&](Rank& rank) {
      std::vector<float> data(rank.rank == 0 ? 100 : 101, 7.f);
      const std::string text = rank.run(all_reduce(data, DType::Float32, 0));
      CHECK_EQ(text,
               "rank 0 called allReduce sum 100 × float32 (seq 0) but rank 1 called allReduce sum 101 × float32 "
               "(seq 0)");
      CHECK_EQ(data[0], 7.f);
      CHECK_EQ(rank.run(barrier(1)), text);
    });
  }
}

TEST("ranks that name different roots all get the same error") {
  std::string texts[4];
  with_ranks(4, one_host, [&](Rank& rank) {
    std::vector<float> data(1000, 1.f);
    Op op = all_reduce(data, DType::Float32, 0);
    op.verb = Verb::Broadcast;
    op.root = rank.rank % 2;
    // A rank whose root names the same root waits for no other rank, and learns of the mismatch at its next call.
    auto failure = rank.group->run(op);
    if (failure == nullptr) failure = rank.group->run(barrier(1));
    CHECK(failure != nullptr && failure->code == FailureCode::Mismatch);
    if (failure) texts[rank.rank] = failure->text;
  });
  for (const auto& text : texts) CHECK_EQ(text, texts[0]);
}

TEST("the timeout of a rank that waits says what the other rank does") {
  std::atomic<bool> failed{false};
  with_ranks(2, one_host, [&](Rank& rank) {
    std::vector<float> data(8, 1.f);
    if (rank.rank == 0) {
      CHECK_EQ(rank.run(transfer(Verb::Send, data, 1, 0)), "");
      sleep_until([&] { return failed.load(); });
      return;
    }
    Op op = all_reduce(data, DType::Float32, 0);
    op.timeout_ns = kAnsweredTimeout;
    CHECK_EQ(without_times(rank.run(op)),
             "rank 0 never entered allReduce #0 (8 × float32) within 1000 ms; it has been idle for T, "
             "after send #0 (8 × float32 to rank 1)");
    failed = true;
  });
}

TEST("attempts end an operation, small ones on the calling thread, and return while another rank has not come") {
  for (const size_t count : {size_t{8}, size_t{1} << 20}) {
    std::atomic<bool> attempted{false};
    with_ranks(2, one_host, [&](Rank& rank) {
      std::vector<float> data(count, static_cast<float>(rank.rank + 1));
      if (rank.rank == 1) sleep_until([&] { return attempted.load(); });
      const uint64_t id = rank.group->start(all_reduce(data, DType::Float32, 0), HostGroup::Progress::Later);
      if (rank.rank == 0) {
        for (int i = 0; i < 40; ++i) CHECK(!rank.group->attempt(id));  // more than are made before some are left out
        attempted = true;
      }
      sleep_until([&] { return rank.group->attempt(id); });
      CHECK(rank.group->attempt(id));  // of an operation that has ended
      std::vector<coll::Ended> ended;
      rank.group->take_ended(ended);
      CHECK_EQ(ended.size(), 1u);
      CHECK(ended.back().id == id && ended.back().failure == nullptr);
      CHECK_EQ(std::count(data.begin(), data.end(), 3.f), static_cast<ptrdiff_t>(count));
    });
  }
}

TEST("an attempt finds a disagreement, and operations queued before and behind it end in order") {
  with_ranks(2, one_host, [&](Rank& rank) {
    std::vector<float> first(8, 1.f), second(8, 1.f), third(rank.rank == 0 ? 8 : 4, 1.f);
    const uint64_t ids[] = {rank.group->start(all_reduce(first, DType::Float32, 0), HostGroup::Progress::Later),
                            rank.group->start(all_reduce(second, DType::Float32, 1), HostGroup::Progress::Later),
                            rank.group->start(all_reduce(third, DType::Float32, 2), HostGroup::Progress::Later)};
    sleep_until([&] { return rank.group->attempt(ids[2]); });
    std::vector<coll::Ended> ended;
    rank.group->take_ended(ended);
    CHECK_EQ(ended.size(), 3u);
    for (size_t i = 0; i < ended.size(); ++i) CHECK_EQ(ended[i].id, ids[i]);
    CHECK(ended.back().failure != nullptr && ended.back().failure->code == FailureCode::Mismatch);
    CHECK(first[0] == 2.f && second[0] == 2.f);
  });
}

TEST("a rank that never comes is named at the deadline, with what it does instead") {
  std::atomic<int> passed{0};
  with_ranks(3, one_host, [&](Rank& rank) {
    Op op = barrier(0);
    if (rank.rank == 2) {
      sleep_until([&] { return passed == 2; });
      const auto failure = rank.group->run(op);
      // The root cause that the other ranks have decided.
      CHECK(failure != nullptr && failure->code == FailureCode::Timeout);
      return;
    }
    op.timeout_ns = kAnsweredTimeout;
    const auto failure = rank.group->run(op);
    CHECK(failure->code == FailureCode::Timeout);
    CHECK_EQ(failure->peers.size(), 1u);
    CHECK_EQ(failure->peers[0], 2);
    CHECK_EQ(failure->text, "rank 2 never entered barrier #0 within 1000 ms; it has not started any operation");
    ++passed;
  });
}

TEST("a timeout names all ranks that never came, also one that waits for another of them") {
  std::atomic<int> failed{0};
  with_ranks(4, own_host, [&](Rank& rank) {
    CHECK_EQ(rank.run(barrier(0)), "");
    Op op = barrier(1);
    op.timeout_ns = kAnsweredTimeout;
    if (rank.rank == 3) {
      sleep_until([&] { return failed == 3; });
      CHECK(rank.group->run(op) != nullptr);  // the root cause that the other ranks have decided
      return;
    }
    if (rank.rank == 1) {  // waits in a receive with a longer timeout, so it has not entered the barrier either
      std::vector<float> data(2);
      Op receive;
      receive.verb = Verb::Recv;
      receive.dtype = DType::Float32;
      receive.count = 2;
      receive.root = 3;
      receive.output = reinterpret_cast<std::byte*>(data.data());
      receive.timeout_ns = kTimeout;
      const auto failure = rank.group->run(receive);
      CHECK(failure != nullptr && failure->peers == (std::vector<int>{1, 3}));
    } else {
      CHECK_EQ(without_times(rank.run(op)),
               "ranks 1, 3 never entered barrier #1 within 1000 ms; rank 1 has been in recv #0 for T (2 × float32 from "
               "rank 3); "
               "rank 3 has been idle for T, after barrier #0");
    }
    ++failed;
  });
}

TEST("all other ranks notice a lost rank at once, also while they sleep") {
  for (const auto& [name, place] : kPlacements) {
    with_ranks(3, place, [&](Rank& rank) {
      CHECK_EQ(rank.run(barrier(0)), "");
      if (rank.rank == 1) {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        rank.group.reset();  // the connections end without a goodbye
        return;
      }
      const int64_t start = now_ns();
      const auto failure = rank.group->run(barrier(1));
      CHECK(failure->code == FailureCode::PeerLost);
      CHECK_EQ(failure->peers[0], 1);
      CHECK(now_ns() - start < 1'000 * kMillisecond);
    });
  }
}

TEST("failure() reports a lost rank that no operation needs, and the other ranks can still communicate") {
  for (const auto& [name, place] : kPlacements) {
    with_ranks(3, place, [&](Rank& rank) {
      CHECK_EQ(rank.run(barrier(0)), "");
      if (rank.rank == 1) {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        CHECK(rank.group->failure() == nullptr);
        rank.group.reset();  // the connections end without a goodbye
        return;
      }
      const int64_t start = now_ns();
      while (rank.group->failure() == nullptr && now_ns() - start < 5'000 * kMillisecond) std::this_thread::yield();
      const auto failure = rank.group->failure();
      CHECK(failure != nullptr && failure->code == FailureCode::PeerLost && failure->peers == std::vector<int>{1});
      std::vector<float> value(1, 7.0f);
      CHECK_EQ(rank.run(transfer(rank.rank == 0 ? Verb::Send : Verb::Recv, value, 2 - rank.rank, 0)), "");
    });
  }
}

TEST("abort reaches all ranks; close after use ends quietly") {
  with_ranks(3, one_host, [&](Rank& rank) {
    std::vector<float> never(1);
    const auto pending = rank.group->start(transfer(Verb::Recv, never, (rank.rank + 1) % 3, 0));
    if (rank.rank == 0) rank.group->abort({FailureCode::System, 0, {0}, "enough"});
    const auto failure = rank.finish(pending);
    CHECK(failure->text == "enough" && failure->code == FailureCode::System && failure->peers == std::vector<int>{0});
    CHECK_EQ(rank.run(barrier(0)), "enough");
    CHECK(rank.finish(rank.group->close()) == nullptr);
  });
  with_ranks(4, two_per_host, [&](Rank& rank) {
    CHECK_EQ(rank.run(barrier(0)), "");
    CHECK(rank.finish(rank.group->close()) == nullptr);
  });
}

TEST("a group can be destroyed while an operation is pending") {
  with_ranks(2, one_host, [&](Rank& rank) {
    if (rank.rank == 0) rank.group->start(barrier(0));
    rank.group.reset();
  });
}

int main() { return run_all(); }
