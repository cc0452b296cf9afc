// Tests ranks that run ahead: a rank that only sends may finish operations before the others begin them. Tests how far
// it gets, and what happens to the handshakes and data that it leaves behind.
#include <random>

#include "base/time/clock.h"
#include "coll/handshake/pending_handshakes.h"
#include "coll/shm/board.h"
#include "test/check.h"
#include "test/coll/ranks.h"

using namespace ringwise;
using namespace ringwise::test;
using coll::FailureCode;
using coll::Verb;

namespace {

constexpr uint64_t kFarthest = coll::PendingHandshakes::kPerPeer;

Op rooted(Verb verb, std::vector<float>& data, uint64_t seq, int root) {
  Op op = all_reduce(data, DType::Float32, seq);
  op.verb = verb;
  op.root = root;
  return op;
}

Op broadcast(std::vector<float>& data, uint64_t seq, int root = 0) { return rooted(Verb::Broadcast, data, seq, root); }

/// Waits until `flag` is set, and fails the test if that takes too long.
void await(const std::atomic<bool>& flag) {
  for (const int64_t deadline = now_ns() + kTimeout; !flag && now_ns() < deadline;) std::this_thread::yield();
  CHECK(flag);
}

bool is_all(const std::vector<float>& data, float value) {
  return std::all_of(data.begin(), data.end(), [&](float x) { return x == value; });
}

}  // namespace

TEST("a rank that only sends is done before the others have come") {
  for (const Verb verb : {Verb::Broadcast, Verb::Gather, Verb::Reduce}) {
    for (const int size : {2, 4}) {
      // The last rank of a gather or reduce is a leaf of every tree.
      const int sender = verb == Verb::Broadcast ? 0 : size - 1;
      std::atomic<bool> is_ahead{false};
      with_ranks(size, own_host, [&](Rank& rank) {
        constexpr uint64_t calls = 40;
        if (rank.rank != sender) await(is_ahead);
        for (uint64_t seq = 0; seq < calls; ++seq) {
          std::vector<float> data(100, verb == Verb::Broadcast && rank.rank != 0 ? -1.f : static_cast<float>(seq + 1));
          std::vector<float> result(100 * size, -1.f);
          Op op = rooted(verb, data, seq, 0);
          if (verb != Verb::Broadcast)
            op.output = rank.rank == 0 ? reinterpret_cast<std::byte*>(result.data()) : nullptr;
          CHECK_EQ(rank.run(op), "");
          const float expected = static_cast<float>(seq + 1) * (verb == Verb::Reduce ? static_cast<float>(size) : 1.f);
          if (verb == Verb::Reduce) result.resize(100);
          if (verb == Verb::Broadcast)
            CHECK(is_all(data, expected));
          else if (rank.rank == 0)
            CHECK(is_all(result, expected));
        }
        if (rank.rank == sender) is_ahead = true;
        CHECK_EQ(rank.run(barrier(calls)), "");
      });
    }
  }
}

TEST("a rank that runs ahead waits after kPerPeer operations, and its timeout names the rank that never came") {
  std::atomic<bool> failed{false};
  with_ranks(2, own_host, [&](Rank& rank) {
    if (rank.rank == 1) return await(failed);
    std::vector<float> data(8);
    for (uint64_t seq = 0; seq < kFarthest; ++seq) CHECK_EQ(rank.run(broadcast(data, seq)), "");
    Op op = broadcast(data, kFarthest);
    op.timeout_ns = kAnsweredTimeout;
    const auto failure = rank.group->run(op);
    CHECK(failure != nullptr && failure->code == FailureCode::Timeout);
    CHECK_EQ(failure ? failure->text : "",
             "rank 1 never entered broadcast #" + std::to_string(kFarthest) +
                 " (8 × float32 from rank 0) within 1000 ms; it has not started any operation");
    failed = true;
  });
}

TEST("a message longer than 64 KiB waits for its receiver") {
  std::atomic<bool> failed{false};
  with_ranks(2, own_host, [&](Rank& rank) {
    if (rank.rank == 1) return await(failed);
    std::vector<float> data(17 * 1024);
    Op op = broadcast(data, 0);
    op.timeout_ns = 300 * kMillisecond;
    const auto failure = rank.group->run(op);
    CHECK(failure != nullptr && failure->code == FailureCode::Timeout);
    failed = true;
  });
}

TEST("a disagreement that is found late names both calls, and no memory is written") {
  std::atomic<bool> is_ahead{false};
  with_ranks(2, own_host, [&](Rank& rank) {
    if (rank.rank == 1) await(is_ahead);
    std::vector<float> data(100, static_cast<float>(rank.rank));
    for (uint64_t seq = 0; seq < 3; ++seq) CHECK_EQ(rank.run(broadcast(data, seq)), "");
    std::vector<float> other(rank.rank == 0 ? 100 : 101, 7.f);
    std::string text = rank.run(broadcast(other, 3));
    CHECK_EQ(text.empty(), rank.rank == 0);
    if (rank.rank == 0) {
      CHECK_EQ(rank.run(broadcast(data, 4)), "");
      is_ahead = true;
      text = rank.run(barrier(5));
    }
    CHECK_EQ(text,
             "rank 0 called broadcast 100 × float32 from rank 0 (seq 3) but rank 1 called broadcast 101 × float32 "
             "from rank 0 (seq 3)");
    CHECK(is_all(other, 7.f));
  });
}

TEST("ranks that each name the other, or themselves, as the root get an error") {
  for (const bool themselves : {true, false}) {
    with_ranks(2, own_host, [&](Rank& rank) {
      std::vector<float> data(100, 7.f);
      // Both ranks have run ahead of each other before.
      for (uint64_t seq = 0; seq < 8; ++seq) CHECK_EQ(rank.run(broadcast(data, seq, static_cast<int>(seq / 4))), "");
      const int root = themselves ? rank.rank : 1 - rank.rank;
      std::string text = rank.run(broadcast(data, 8, root));
      if (text.empty()) text = rank.run(barrier(9));
      const auto call = [&](int of) {
        return "rank " + std::to_string(of) + " called broadcast 100 × float32 from rank " +
               std::to_string(themselves ? of : 1 - of) + " (seq 8)";
      };
      CHECK_EQ(text, call(0) + " but " + call(1));
      CHECK(is_all(data, 7.f));
    });
  }
}

TEST("if every rank only sends, close at the latest reports roots that differ") {
  for (const auto& place :
       {std::function<int(int)>(one_host), std::function<int(int)>(own_host), std::function<int(int)>(two_per_host)}) {
    for (const Verb verb : {Verb::Broadcast, Verb::Reduce, Verb::Gather}) {
      for (const uint64_t before : {0, 6}) {
        with_ranks(3, place, [&](Rank& rank) {
          std::vector<float> data(100, 7.f), result(300);
          const auto call = [&](uint64_t seq, int root) {
            Op op = rooted(verb, data, seq, root);
            if (verb != Verb::Broadcast)
              op.output = rank.rank == root ? reinterpret_cast<std::byte*>(result.data()) : nullptr;
            return rank.group->run(op);
          };
          std::shared_ptr<const coll::Failure> failure;
          for (uint64_t seq = 0; seq < before && failure == nullptr; ++seq) failure = call(seq, 0);
          if (failure == nullptr) failure = call(before, verb == Verb::Broadcast ? rank.rank : (rank.rank + 1) % 3);
          const auto last = rank.finish(rank.group->close());
          CHECK((failure == nullptr) != (last == nullptr));  // exactly one call reports it
          if (failure == nullptr) failure = last;
          CHECK(failure != nullptr && failure->code == FailureCode::Mismatch);
          CHECK(is_all(data, 7.f));
        });
      }
    }
  }
}

TEST("on one host, the next call reports roots that differ") {
  for (const size_t count : {1, 100, 5'000}) {
    with_ranks(3, one_host, [&](Rank& rank) {
      std::vector<float> data(count, 7.f);
      std::string text = rank.run(broadcast(data, 0, rank.rank));
      if (text.empty()) text = rank.run(broadcast(data, 1, 0));
      CHECK(text.find("called broadcast") != std::string::npos);
      CHECK(is_all(data, 7.f));
    });
  }
}

TEST("on one host, a rank that only sends waits after kRunAhead operations, and its timeout names the other rank") {
  for (const Verb verb : {Verb::Broadcast, Verb::Gather, Verb::Reduce}) {
    std::atomic<bool> failed{false};
    with_ranks(2, one_host, [&](Rank& rank) {
      const int root = verb == Verb::Broadcast ? 0 : 1;
      std::vector<float> data(2 * 8), result(2 * 8);
      uint64_t seq = 0;
      const auto call = [&] {
        Op op = rooted(verb, data, seq++, root);
        op.count = 8;
        op.timeout_ns = kAnsweredTimeout;
        if (verb != Verb::Broadcast) op.output = reinterpret_cast<std::byte*>(result.data());
        return rank.group->run(op);
      };
      CHECK(call() == nullptr);
      CHECK_EQ(rank.run(barrier(seq++)), "");
      if (rank.rank == 1) return await(failed);
      for (uint64_t ahead = 0; ahead < coll::kRunAhead; ++ahead) CHECK(call() == nullptr);
      const auto failure = call();
      CHECK(failure != nullptr && failure->code == FailureCode::Timeout && failure->peers == std::vector<int>{1});
      failed = true;
    });
  }
}

TEST("on one host, a rank that gets a small broadcast does not wait for the other ranks") {
  for (const size_t count : {3, 88}) {
    std::atomic<bool> is_done{false};
    with_ranks(3, one_host, [&](Rank& rank) {
      uint64_t seq = 0;
      const auto call = [&](float value) {
        std::vector<float> data(count, rank.rank == 0 ? value : -1.f);
        CHECK_EQ(rank.run(broadcast(data, seq++)), "");
        CHECK(is_all(data, value));
      };
      call(5.f);
      CHECK_EQ(rank.run(barrier(seq++)), "");
      if (rank.rank == 2) await(is_done);
      for (uint64_t ahead = 0; ahead < coll::kRunAhead; ++ahead) call(static_cast<float>(ahead));
      if (rank.rank == 1) is_done = true;
      CHECK_EQ(rank.run(barrier(seq++)), "");
    });
  }
}

TEST("on one host, a disagreement with a rank that comes late names its call, and its memory is not written") {
  std::atomic<bool> is_ahead{false};
  with_ranks(3, one_host, [&](Rank& rank) {
    std::vector<float> data(20, static_cast<float>(rank.rank)), other(rank.rank == 2 ? 21 : 20, 7.f);
    for (uint64_t seq = 0; seq < 3; ++seq) CHECK_EQ(rank.run(broadcast(data, seq)), "");
    CHECK_EQ(rank.run(barrier(3)), "");
    if (rank.rank == 2) await(is_ahead);
    std::string text;
    for (uint64_t seq = 4; seq < 10 && text.empty(); ++seq) text = rank.run(broadcast(seq == 6 ? other : data, seq));
    CHECK_EQ(text.empty(), rank.rank != 2);
    if (rank.rank == 1) is_ahead = true;
    if (rank.rank != 2) text = rank.run(barrier(10));
    CHECK_EQ(text.substr(text.find(" but ")), " but rank 2 called broadcast 21 × float32 from rank 0 (seq 6)");
    CHECK(is_all(other, 7.f));
  });
}

TEST("roots that differ are reported at once if messages are long") {
  for (const auto& place : {std::function<int(int)>(one_host), std::function<int(int)>(own_host)}) {
    for (const bool gathers : {false, true}) {
      with_ranks(2, place, [&](Rank& rank) {
        std::vector<float> data(4'000'000, 7.f);
        Op op = rooted(gathers ? Verb::Gather : Verb::Broadcast, data, 0, gathers ? 1 - rank.rank : rank.rank);
        if (gathers) op.output = nullptr;
        const int64_t start = now_ns();
        const auto failure = rank.group->run(op);
        CHECK(failure != nullptr && failure->code == FailureCode::Mismatch);
        CHECK(now_ns() - start < kTimeout / 2);
        CHECK(is_all(data, 7.f));
      });
    }
  }
}

TEST("a rank that comes after the other has left still learns that the roots differ") {
  std::atomic<bool> has_left{false};
  with_ranks(2, one_host, [&](Rank& rank) {
    std::vector<float> data(10, 7.f);
    if (rank.rank == 1) await(has_left);
    Op op = broadcast(data, 0, rank.rank);
    if (rank.rank == 0) op.timeout_ns = 100 * kMillisecond;
    CHECK_EQ(rank.run(op), "");
    const auto failure = rank.finish(rank.group->close());
    has_left = true;
    CHECK_EQ(failure != nullptr, rank.rank == 1);
  });
}

TEST("a rank that only broadcasts notices at once that its receiver is lost, or has left") {
  for (const bool leaves : {false, true}) {
    for (const auto& place : {std::function<int(int)>(one_host), std::function<int(int)>(own_host),
                              std::function<int(int)>(two_per_host)}) {
      std::atomic<int64_t> gone_ns{0};
      with_ranks(3, place, [&](Rank& rank) {
        std::vector<float> data(16, 1.f);
        uint64_t seq = 0;
        if (rank.rank == 2) {
          while (seq < 50) CHECK_EQ(rank.run(broadcast(data, seq++)), "");
          gone_ns = now_ns();
          if (leaves) CHECK(rank.finish(rank.group->close()) == nullptr);
          return rank.group.reset();
        }
        std::shared_ptr<const coll::Failure> failure;
        for (const int64_t deadline = now_ns() + kTimeout; failure == nullptr && now_ns() < deadline;)
          failure = rank.group->run(broadcast(data, seq++));
        CHECK(failure != nullptr && failure->code == FailureCode::PeerLost && failure->peers == std::vector<int>{2});
        CHECK(now_ns() - gone_ns < 1'000 * kMillisecond);
      });
    }
  }
}

TEST("close waits until the others have called the operations, but not for ranks that have left") {
  std::atomic<bool> is_closing{false}, is_closed{false};
  with_ranks(2, own_host, [&](Rank& rank) {
    std::vector<float> data(15'000, rank.rank == 0 ? 3.f : 0.f);
    if (rank.rank == 1) await(is_closing);
    for (uint64_t seq = 0; seq < 40; ++seq) {
      if (rank.rank == 1) std::fill(data.begin(), data.end(), 0.f);
      CHECK_EQ(rank.run(broadcast(data, seq)), "");
      CHECK(is_all(data, 3.f));
      // The operating system buffers the first few messages although rank 1 has not called the operation.
      if (seq == 2) is_closing = true;
    }
    if (rank.rank == 1) await(is_closed);  // rank 1 stays connected and sends nothing more
    CHECK(rank.finish(rank.group->close()) == nullptr);
    if (rank.rank == 0) is_closed = true;
  });
  const int64_t start = now_ns();
  std::atomic<bool> is_sent{false};
  with_ranks(2, own_host, [&](Rank& rank) {
    std::vector<float> data(100);
    if (rank.rank == 0) {
      CHECK_EQ(rank.run(broadcast(data, 0)), "");
      is_sent = true;
    } else {
      await(is_sent);  // rank 1 never receives what rank 0 sent
    }
    CHECK(rank.finish(rank.group->close()) == nullptr);
  });
  CHECK(now_ns() - start < kTimeout / 2);
}

TEST("messages that a rank sent before it was lost arrive") {
  for (int i = 0; i < 20; ++i) {
    std::atomic<bool> is_gone{false};
    with_ranks(2, own_host, [&](Rank& rank) {
      std::vector<float> data(1'000, rank.rank == 0 ? 3.f : 0.f);
      if (rank.rank == 1) await(is_gone);
      for (uint64_t seq = 0; seq < 5; ++seq) CHECK_EQ(rank.run(broadcast(data, seq)), "");
      CHECK(is_all(data, 3.f));
      if (rank.rank == 0) {
        rank.group.reset();
        is_gone = true;
      } else {
        const auto failure = rank.group->run(barrier(5));
        CHECK(failure != nullptr && failure->code == FailureCode::PeerLost);
      }
    });
  }
}

TEST("operations keep their order while ranks run ahead by turns") {
  for (const auto& place :
       {std::function<int(int)>(one_host), std::function<int(int)>(own_host), std::function<int(int)>(two_per_host)}) {
    with_ranks(4, place, [](Rank& rank) {
      std::mt19937 random(5);  // the same numbers on all ranks
      std::mt19937 own(rank.rank);
      for (uint64_t seq = 0; seq < 1'000; ++seq) {
        constexpr Verb verbs[] = {Verb::Broadcast, Verb::Broadcast, Verb::Gather, Verb::Reduce,
                                  Verb::Scatter,   Verb::AllReduce, Verb::Barrier};
        const Verb verb = verbs[random() % std::size(verbs)];
        const int root = static_cast<int>(random() % 64 < 60 ? seq / 100 % 4 : random() % 4);
        const size_t count = random() % 50 == 0 ? 20'000 : random() % 300;
        std::vector<float> data(verb == Verb::Scatter ? count * 4 : count, static_cast<float>(seq % 1000 + rank.rank));
        std::vector<float> result(verb == Verb::Gather ? count * 4 : count, -1.f);
        Op op = rooted(verb, data, seq, root);
        op.count = count;
        const bool separate = verb == Verb::Gather || verb == Verb::Reduce || verb == Verb::Scatter;
        if (separate) op.output = reinterpret_cast<std::byte*>(result.data());
        if (verb == Verb::Barrier) op = barrier(seq);
        if (own() % 3 != 0)
          CHECK_EQ(rank.run(op), "");
        else
          CHECK(rank.finish(rank.group->start(op)) == nullptr);
        if (count == 0) continue;
        const float at_root = static_cast<float>(seq % 1000 + root), sum = static_cast<float>(4 * (seq % 1000) + 6);
        if (verb == Verb::Broadcast) CHECK(is_all(data, at_root));
        if (verb == Verb::Scatter) CHECK(is_all(result, at_root));
        if (verb == Verb::AllReduce) CHECK(is_all(data, sum));
        if (verb == Verb::Reduce && rank.rank == root) CHECK(is_all(result, sum));
        for (int r = 0; verb == Verb::Gather && rank.rank == root && r < 4; ++r)
          CHECK_EQ(result[count * r], static_cast<float>(seq % 1000 + r));
      }
      CHECK(rank.finish(rank.group->close()) == nullptr);
    });
  }
}

int main() { return run_all(); }
