// Tests sends and receives: which message goes to which receive, over shared memory and TCP, together with collectives,
// and when ranks disagree, leave or die.
#include <numeric>

#include "base/time/clock.h"
#include "test/check.h"
#include "test/coll/ranks.h"

using namespace ringwise;
using namespace ringwise::test;
using coll::FailureCode;
using coll::Verb;

namespace {

const std::function<int(int)> kPlacements[] = {one_host, own_host, two_per_host};
constexpr int kAny = -1;
constexpr size_t kLarge = 3'000'000;  // elements, far more than links hold

Op transfer(Verb verb, std::vector<float>& data, int peer, int tag = 0) {
  Op op = all_reduce(data, DType::Float32, 0);
  op.verb = verb;
  op.root = peer;
  op.tag = tag;
  return op;
}

Op send_of(std::vector<float>& data, int peer, int tag = 0) { return transfer(Verb::Send, data, peer, tag); }
Op recv_into(std::vector<float>& data, int peer, int tag = 0) { return transfer(Verb::Recv, data, peer, tag); }

bool all_equal(const std::vector<float>& data, float value) {
  return std::all_of(data.begin(), data.end(), [&](float x) { return x == value; });
}

void on_every_placement(int size, const std::function<void(Rank&)>& body) {
  for (const auto& place : kPlacements) with_ranks(size, place, body);
}

/// Waits until all these operations have ended, takes their results, and checks that all ended well.
void finish_all(Rank& rank, const std::vector<uint64_t>& ids) {
  for (const auto id : ids) rank.group->wait(id);
  std::vector<coll::Ended> ended;
  rank.group->take_ended(ended);
  CHECK_EQ(ended.size(), ids.size());
  for (const auto& one : ended) CHECK_EQ(one.failure ? one.failure->text : "", "");
}

void pause_ms(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

}  // namespace

TEST("messages of every size arrive, and the receive knows the sender") {
  on_every_placement(3, [](Rank& rank) {
    for (const size_t count : {0, 1, 3, 15, 16, 17, 1000, 1008, 1009, 100'003}) {
      std::vector<float> data(count, static_cast<float>(rank.rank));
      if (rank.rank == 0) {
        for (const int from : {2, 1}) {
          int source = -2;
          CHECK(rank.group->run(recv_into(data, from), &source) == nullptr);
          CHECK_EQ(source, from);
          CHECK(all_equal(data, static_cast<float>(from)));
        }
      } else {
        int source = -2;
        CHECK(rank.group->run(send_of(data, 0), &source) == nullptr);
        CHECK_EQ(source, -1);
      }
    }
  });
}

TEST("many large messages of both directions run side by side, each direction in order") {
  on_every_placement(2, [](Rank& rank) {
    const int peer = 1 - rank.rank;
    std::vector<std::vector<float>> out, in(3, std::vector<float>(kLarge / 3, -1.f));
    for (int i = 0; i < 3; ++i) out.emplace_back(kLarge / 3, static_cast<float>(10 * rank.rank + i));
    std::vector<uint64_t> pending;
    for (auto& data : out) pending.push_back(rank.group->start(send_of(data, peer)));
    for (auto& data : in) pending.push_back(rank.group->start(recv_into(data, peer)));
    finish_all(rank, pending);
    for (int i = 0; i < 3; ++i) CHECK(all_equal(in[i], static_cast<float>(10 * peer + i)));
  });
}

TEST("receives take messages by tag, whatever came first; equal tags stay in order") {
  on_every_placement(2, [](Rank& rank) {
    constexpr int kMessages = 40;
    constexpr size_t kCount = 50'000;
    std::vector<std::vector<float>> data(kMessages, std::vector<float>(kCount, -1.f));
    std::vector<uint64_t> pending;
    // Message i has tag i % 5. The receiver asks for the tags from the last to the first.
    if (rank.rank == 0) {
      for (int i = 0; i < kMessages; ++i) {
        std::fill(data[i].begin(), data[i].end(), static_cast<float>(i));
        pending.push_back(rank.group->start(send_of(data[i], 1, i % 5)));
      }
    } else {
      for (int tag = 4; tag >= 0; --tag) {
        for (int i = tag; i < kMessages; i += 5) pending.push_back(rank.group->start(recv_into(data[i], 0, tag)));
      }
    }
    finish_all(rank, pending);
    for (int i = 0; i < kMessages; ++i) CHECK(all_equal(data[i], static_cast<float>(i)));
  });
}

TEST("a message that came before its receive is kept, however much of it has arrived") {
  on_every_placement(2, [](Rank& rank) {
    std::vector<float> large(kLarge, 1.f), small(4, 2.f);
    if (rank.rank == 0) {
      finish_all(rank, {rank.group->start(send_of(large, 1, 7)), rank.group->start(send_of(small, 1, 8))});
      CHECK_EQ(rank.run(send_of(large, 1, 9)), "");
      return;
    }
    std::vector<float> first(kLarge, -1.f), second(4, -1.f), third(kLarge, -1.f);
    // The engine moves the whole large message, which came first, to memory of its own.
    CHECK_EQ(rank.run(recv_into(second, 0, 8)), "");
    CHECK(all_equal(second, 2.f));
    CHECK_EQ(rank.run(recv_into(first, 0, 7)), "");
    CHECK(all_equal(first, 1.f));
    // This receive is most likely posted while the engine moves a large message to memory of its own.
    std::vector<float> never(1);
    rank.group->start(recv_into(never, 0, 99));
    pause_ms(1);
    const auto late = rank.group->start(recv_into(third, 0, 9));
    rank.group->wait(late);
    CHECK(all_equal(third, 1.f));
  });
}

TEST("a receive from any rank gets a message of its tag, and says whose") {
  on_every_placement(4, [](Rank& rank) {
    constexpr int kEach = 20;
    std::vector<float> data(100);
    if (rank.rank != 0) {
      for (int i = 0; i < kEach; ++i) {
        std::fill(data.begin(), data.end(), static_cast<float>(rank.rank * 100 + i));
        CHECK_EQ(rank.run(send_of(data, 0, 1)), "");
      }
      CHECK_EQ(rank.run(send_of(data, 0, 2)), "");
      return;
    }
    std::vector<int> next(4, 0);
    for (int i = 0; i < 3 * kEach; ++i) {
      int source = -2;
      CHECK(rank.group->run(recv_into(data, kAny, 1), &source) == nullptr);
      CHECK(source >= 1 && source <= 3);
      if (source < 1 || source > 3) return;
      CHECK(all_equal(data, static_cast<float>(source * 100 + next[source]++)));
    }
    for (int from = 1; from < 4; ++from) CHECK_EQ(rank.run(recv_into(data, from, 2)), "");
  });
}

TEST("receives from any and from one rank are served in the order of posting") {
  on_every_placement(2, [](Rank& rank) {
    std::vector<float> a(8, -1.f), b(8, -1.f), first(8, 1.f), second(8, 2.f);
    if (rank.rank == 1) {
      CHECK_EQ(rank.run(barrier(0)), "");
      finish_all(rank, {rank.group->start(send_of(first, 0)), rank.group->start(send_of(second, 0))});
      return;
    }
    const auto any = rank.group->start(recv_into(a, kAny));
    const auto one = rank.group->start(recv_into(b, 1));
    CHECK_EQ(rank.run(barrier(0)), "");
    rank.group->wait(any);
    rank.group->wait(one);
    CHECK(all_equal(a, 1.f));
    CHECK(all_equal(b, 2.f));
  });
}

TEST("receives from any rank take messages of all ranks in turn") {
  on_every_placement(3, [](Rank& rank) {
    std::vector<float> data(1, static_cast<float>(rank.rank));
    constexpr int kEach = 50;
    if (rank.rank != 0) {
      for (int i = 0; i < kEach; ++i) CHECK_EQ(rank.run(send_of(data, 0)), "");
      CHECK_EQ(rank.run(barrier(0)), "");
      return;
    }
    CHECK_EQ(rank.run(barrier(0)), "");  // all messages have arrived before the first receive
    int of_rank_2 = 0;
    for (int i = 0; i < kEach; ++i) {
      int source = -1;
      CHECK(rank.group->run(recv_into(data, kAny), &source) == nullptr);
      of_rank_2 += source == 2;
    }
    CHECK_EQ(of_rank_2, kEach / 2);
    for (int i = 0; i < kEach; ++i) CHECK_EQ(rank.run(recv_into(data, kAny)), "");
  });
}

TEST("collectives and messages do not wait for each other") {
  on_every_placement(3, [](Rank& rank) {
    std::vector<float> later(1000, -1.f), data(20'000, 1.f), out(kLarge / 10, static_cast<float>(rank.rank)),
        in(kLarge / 10);
    const int next = (rank.rank + 1) % 3, previous = (rank.rank + 2) % 3;
    const auto pending = rank.group->start(recv_into(later, previous, 1));
    for (uint64_t seq = 0; seq < 20; ++seq) {
      std::fill(data.begin(), data.end(), 1.f);
      const auto sent = rank.group->start(send_of(out, next));
      const auto reduced = rank.group->start(all_reduce(data, DType::Float32, seq));
      const auto received = rank.group->start(recv_into(in, previous));
      finish_all(rank, {sent, reduced, received});
      CHECK(all_equal(data, 3.f));
      CHECK(all_equal(in, static_cast<float>(previous)));
    }
    CHECK_EQ(rank.run(barrier(20)), "");
    std::vector<float> last(1000, static_cast<float>(rank.rank));
    CHECK_EQ(rank.run(send_of(last, next, 1)), "");
    finish_all(rank, {pending});
    CHECK(all_equal(later, static_cast<float>(previous)));
  });
}

TEST("a large message for which there is no receive yet does not hold up a collective") {
  on_every_placement(2, [](Rank& rank) {
    std::vector<float> large(kLarge, static_cast<float>(rank.rank));
    std::vector<uint64_t> pending;
    if (rank.rank == 0) pending.push_back(rank.group->start(send_of(large, 1)));
    CHECK_EQ(rank.run(barrier(0)), "");
    if (rank.rank == 1) pending.push_back(rank.group->start(recv_into(large, 0)));
    finish_all(rank, pending);
    CHECK(all_equal(large, 0.f));
  });
}

TEST("a count that differs fails on both sides, before the buffer is touched") {
  on_every_placement(2, [](Rank& rank) {
    std::vector<float> data(rank.rank == 0 ? 10 : 12, static_cast<float>(rank.rank));
    const std::string text =
        "rank 0 called send 10 × float32 to rank 1 with tag 3 but rank 1 called recv 12 × float32 from ";
    if (rank.rank == 0) {
      const std::string told = rank.run(send_of(data, 1, 3));  // the send may have ended before rank 1 compared it
      CHECK_EQ(told.empty() ? rank.run(barrier(0)) : told, text + "any rank with tag 3");
    } else {
      const auto failure = rank.group->run(recv_into(data, kAny, 3));
      CHECK(failure != nullptr && failure->code == FailureCode::Mismatch &&
            failure->text == text + "any rank with tag 3");
      CHECK(all_equal(data, 1.f));
    }
  });
}

TEST("a dtype that differs fails also when the message came first") {
  on_every_placement(2, [](Rank& rank) {
    std::vector<float> data(10, static_cast<float>(rank.rank)), other(1);
    if (rank.rank == 0) {
      CHECK_EQ(rank.run(send_of(data, 1, 3)), "");
      CHECK_EQ(rank.run(send_of(other, 1, 4)), "");
      CHECK(!rank.run(barrier(0)).empty());
      return;
    }
    CHECK_EQ(rank.run(recv_into(other, 0, 4)), "");
    Op op = recv_into(data, 0, 3);
    op.dtype = DType::Int32;
    CHECK_EQ(rank.run(op),
             "rank 0 called send 10 × float32 to rank 1 with tag 3 but rank 1 called recv 10 × int32 from rank 0 with "
             "tag 3");
    CHECK(all_equal(data, 1.f));
  });
}

TEST("a receive from any rank survives a lost rank, and fails at once when no other rank is left") {
  on_every_placement(3, [](Rank& rank) {
    std::vector<float> data(8);
    if (rank.rank != 0) {
      CHECK_EQ(rank.run(barrier(0)), "");
      if (rank.rank == 2) {
        CHECK_EQ(rank.run(recv_into(data, 0)), "");
        data[0] = 5.f;
        CHECK_EQ(rank.run(send_of(data, 0)), "");
      }
      return rank.group.reset();  // the connections end without a goodbye
    }
    const auto any = rank.group->start(recv_into(data, kAny));
    CHECK_EQ(rank.run(barrier(0)), "");
    pause_ms(50);  // rank 1 is lost, but rank 2 may still send
    std::vector<float> go(8);
    CHECK_EQ(rank.run(send_of(go, 2)), "");
    CHECK(rank.finish(any) == nullptr);
    CHECK_EQ(data[0], 5.f);
    const int64_t start = now_ns();
    const auto failure = rank.group->run(recv_into(data, kAny));
    CHECK(failure != nullptr && failure->code == FailureCode::PeerLost);
    CHECK(now_ns() - start < 1'000 * kMillisecond);
  });
}

TEST("a receive from a rank that has died, or has left, names it") {
  for (const bool orderly : {false, true}) {
    on_every_placement(3, [&](Rank& rank) {
      std::vector<float> data(8, 7.f);
      if (rank.rank == 1) {
        CHECK_EQ(rank.run(send_of(data, 0)), "");
        if (orderly) CHECK(rank.finish(rank.group->close()) == nullptr);
        return rank.group.reset();
      }
      if (rank.rank == 2) return;
      std::vector<float> in(8);
      CHECK_EQ(rank.run(recv_into(in, 1)), "");  // the message that it sent before arrives
      CHECK(all_equal(in, 7.f));
      const int64_t start = now_ns();
      const auto failure = rank.group->run(recv_into(in, 1));
      CHECK(failure != nullptr && failure->code == FailureCode::PeerLost && failure->peers == std::vector<int>{1});
      CHECK(now_ns() - start < 1'000 * kMillisecond);
    });
  }
}

TEST("a receive fails if the sender's death has cut off the message") {
  std::atomic<int> deaths{0};
  int placements = 0;  // only rank 0 uses it
  on_every_placement(2, [&](Rank& rank) {
    std::vector<float> large(kLarge);
    if (rank.rank == 1) {
      rank.group->start(send_of(large, 0));
      CHECK_EQ(rank.run(barrier(0)), "");
      rank.group.reset();
      ++deaths;
      return;
    }
    CHECK_EQ(rank.run(barrier(0)), "");
    // The receiver waits until the sender is dead: if it received while the sender lives, it might get the whole
    // message.
    ++placements;
    while (deaths < placements) std::this_thread::yield();
    const auto failure = rank.group->run(recv_into(large, kAny));
    CHECK(failure != nullptr && failure->code == FailureCode::PeerLost && failure->peers == std::vector<int>{1});
  });
}

TEST("a receive without a message fails at the deadline, and the error says what the other rank does instead") {
  std::atomic<int> failed{0};
  with_ranks(2, own_host, [&](Rank& rank) {
    if (rank.rank == 1) {
      std::vector<float> other(4);
      const auto failure = rank.group->run(recv_into(other, 0, 5));
      CHECK(failure != nullptr && failure->code == FailureCode::Timeout);  // the root cause that rank 0 has decided
      ++failed;
      return;
    }
    std::vector<float> data(4);
    Op op = recv_into(data, kAny, 6);
    op.timeout_ns = kAnsweredTimeout;
    const auto failure = rank.group->run(op);
    CHECK_EQ(without_times(failure ? failure->text : ""),
             "no answer from rank 1 within 1000 ms in recv #0 (4 × float32 from any rank with tag 6); it has been in "
             "recv #0 for T "
             "(4 × float32 from rank 0 with tag 5)");
    sleep_until([&] { return failed > 0; });
  });
}

TEST("messages of a rank that has left arrive, also if it left messages unread") {
  with_ranks(2, own_host, [](Rank& rank) {
    std::vector<float> unread(8), last(kLarge / 10, 3.f);
    if (rank.rank == 1) {
      CHECK_EQ(rank.run(barrier(0)), "");
      const auto sent = rank.group->start(send_of(last, 0));
      CHECK(rank.finish(sent) == nullptr);
      CHECK(rank.finish(rank.group->close()) == nullptr);
      return;
    }
    CHECK_EQ(rank.run(send_of(unread, 1)), "");
    CHECK_EQ(rank.run(barrier(0)), "");
    pause_ms(100);
    std::vector<float> in(last.size());
    CHECK_EQ(rank.run(recv_into(in, 1)), "");
    CHECK(all_equal(in, 3.f));
  });
}

TEST("thousands of small messages with mixed tags and senders all find their receive") {
  on_every_placement(4, [](Rank& rank) {
    constexpr int kMessages = 600;
    std::vector<std::vector<float>> out, in;
    std::vector<uint64_t> pending;
    const auto count_of = [](int from, int to, int i) { return static_cast<size_t>((from * 7 + to * 3 + i) % 40); };
    for (int i = 0; i < kMessages; ++i) {
      for (int peer = 0; peer < 4; ++peer) {
        if (peer == rank.rank) continue;
        out.emplace_back(count_of(rank.rank, peer, i), static_cast<float>(rank.rank * 1000 + i));
        in.emplace_back(count_of(peer, rank.rank, i), -1.f);
        pending.push_back(rank.group->start(send_of(out.back(), peer, i % 16)));
        pending.push_back(rank.group->start(recv_into(in.back(), peer, i % 16)));
      }
    }
    finish_all(rank, pending);
    size_t at = 0;
    for (int i = 0; i < kMessages; ++i) {
      for (int peer = 0; peer < 4; ++peer) {
        if (peer != rank.rank) CHECK(all_equal(in[at++], static_cast<float>(peer * 1000 + i)));
      }
    }
  });
}

int main() { return run_all(); }
