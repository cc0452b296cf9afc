// Tests the engine without a group. Two ranks share a pretended host or have one each, and the test drives their
// engines in place of the lanes.
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/time/clock.h"
#include "coll/engine/progress_engine.h"
#include "test/check.h"

using namespace ringwise;
using coll::Driver;
using coll::Ended;
using coll::Failure;
using coll::FailureCode;
using coll::Op;
using coll::Verb;

namespace {

struct Rank {
  int rank;
  coll::FlightRecorder flight{2};
  coll::LaneSignals signals;
  coll::RequestQueue requests{[] {}};
  int long_waits = 0;
  int most_waits = -1;  // the long wait at which the thread must end; -1 for none
  coll::FailureProtocol failures;
  coll::ProgressEngine engine;

  explicit Rank(int rank)
      : rank(rank),
        failures(rank, 2, flight, signals.stop,
                 {.decided = [](const Failure&) {},
                  .end_all = [this] { engine.end_all(); },
                  .work = [this] { return engine.work(); }}),
        engine(rank, 2, requests, flight, failures, signals, [this] { return ++long_waits != most_waits; }) {}

  uint64_t start(Op op) {
    op.deadline_ns = now_ns() + op.timeout_ns;
    op.record = flight.enter(op);
    requests.push(op);
    return op.id;
  }
  /// Lets the engine do exactly one round, as a lane does when another thread is about to take over.
  void round() {
    signals.drivers = 1;
    engine.pump(Driver::Lane);
    signals.drivers = 0;
  }
  /// Takes the outcome of an operation, which must have ended. Returns the text of its failure, or "" if it ended well.
  std::string text_of(uint64_t id) {
    const Ended ended = requests.take(id);
    return ended.failure ? ended.failure->text : "";
  }
};

/// Connects two engines and calls body(rank 0, rank 1). The ranks use shared memory and a board if `hosts` is 1, and
/// TCP if it is 2.
void with_two(int hosts, const std::function<void(Rank&, Rank&)>& body) {
  const coll::Listener listeners[2] = {coll::Listener("127.0.0.1"), coll::Listener("127.0.0.1")};
  Rank ranks[2] = {Rank(0), Rank(1)};
  const auto connect = [&](int mine) {
    const coll::Listener& other = listeners[1 - mine];
    coll::PeerAddress peer{1 - mine, hosts == 1, other.unix_name(), "127.0.0.1", other.port(), {}, {}};
    peer.mine[0] = peer.theirs[0] = 7;
    ranks[mine].engine.connect(coll::connect_all(listeners[mine], mine, {peer}, now_ns() + 10'000 * kMillisecond,
                                                 ranks[mine].signals.wake.descriptor()),
                               {});
  };
  std::thread second([&] { connect(1); });
  connect(0);
  second.join();
  body(ranks[0], ranks[1]);
  for (Rank& rank : ranks) rank.engine.leave();
}

Op all_reduce(std::vector<float>& data, uint64_t seq, int64_t timeout_ms = 10'000) {
  Op op;
  op.verb = Verb::AllReduce;
  op.dtype = DType::Float32;
  op.reduce = coll::ReduceOp::Sum;
  op.seq = seq;
  op.count = data.size();
  op.input = op.output = reinterpret_cast<std::byte*>(data.data());
  op.timeout_ns = timeout_ms * kMillisecond;
  return op;
}

Op message(Verb verb, std::vector<float>& data, int peer, uint64_t seq) {
  Op op = all_reduce(data, seq);
  op.verb = verb;
  op.root = peer;
  return op;
}

}  // namespace

TEST("rounds of two engines in turns carry out operations in the order of the requests") {
  for (const int hosts : {1, 2}) {
    with_two(hosts, [](Rank& a, Rank& b) {
      std::vector<float> one(1000, 1), two(1000, 2), more(70'000, 3), yet(70'000, 4);
      CHECK(!a.engine.has_work());
      const uint64_t first = a.start(all_reduce(one, 0)), second = a.start(all_reduce(more, 1));
      const uint64_t third = b.start(all_reduce(two, 0)), fourth = b.start(all_reduce(yet, 1));
      CHECK(a.engine.has_work() && !a.engine.is_busy());
      a.round();
      CHECK(a.engine.is_busy());
      CHECK_EQ(a.engine.work().begun, 1u);  // the second operation waits for the first
      for (int i = 0; i < 100'000 && !(a.requests.has_ended(second) && b.requests.has_ended(fourth)); ++i) {
        a.round();
        b.round();
      }
      std::vector<Ended> ended;
      a.requests.take_ended(ended);
      CHECK_EQ(ended.size(), 2u);
      CHECK_EQ(ended[0].id, first);
      CHECK_EQ(ended[1].id, second);
      CHECK_EQ(b.text_of(third) + b.text_of(fourth), "");
      CHECK_EQ(one[999], 3.f);
      CHECK_EQ(two[0], 3.f);
      CHECK_EQ(more[69'999], 7.f);
      CHECK_EQ(yet[69'999], 7.f);
      for (Rank* rank : {&a, &b}) {
        rank->round();  // this round finds that no other collective is queued
        CHECK(!rank->engine.has_work());
      }
    });
  }
}

TEST("messages do not wait for a collective that another rank has yet to begin") {
  with_two(2, [](Rank& a, Rank& b) {
    std::vector<float> sum(10, 1), sent(10, 5), got(10);
    const uint64_t blocked = a.start(all_reduce(sum, 0));
    const uint64_t out = a.start(message(Verb::Send, sent, 1, 0)), in = b.start(message(Verb::Recv, got, 0, 0));
    for (int i = 0; i < 100'000 && !(a.requests.has_ended(out) && b.requests.has_ended(in)); ++i) {
      a.round();
      b.round();
    }
    CHECK_EQ(a.text_of(out) + b.text_of(in), "");
    CHECK_EQ(got[9], 5.f);
    CHECK(!a.requests.has_ended(blocked));
    a.failures.fail({FailureCode::System, 0, {0}, "the test is over"});
    CHECK_EQ(a.text_of(blocked), "the test is over");
  });
}

TEST("a waiting thread drives the engine until its operation ends, here by the deadline") {
  with_two(1, [](Rank& a, Rank&) {
    std::vector<float> data(10, 1);
    const uint64_t id = a.start(all_reduce(data, 0, 200));
    a.engine.wait_for(id);
    a.engine.pump(Driver::Waiter);
    const std::string text = a.text_of(id);
    CHECK(text.find("rank 1") != std::string::npos);
    CHECK(a.failures.cause() != nullptr && a.failures.cause()->code == FailureCode::Timeout);
    CHECK(a.long_waits > 0);
    CHECK_EQ(data[0], 1.f);
  });
}

TEST("a waiting thread that must end gives up, and its rank counts as lost") {
  with_two(1, [](Rank& a, Rank& b) {
    std::vector<float> data(10, 1);
    a.most_waits = 2;
    const uint64_t id = a.start(all_reduce(data, 0));
    a.engine.wait_for(id);
    a.engine.pump(Driver::Waiter);
    const std::string expected = "lost rank 0 (its thread was told to end in the middle of a call)";
    CHECK_EQ(a.text_of(id), expected);
    CHECK(a.failures.cause()->code == FailureCode::PeerLost);
    b.failures.poll();
    CHECK(b.failures.cause() != nullptr && b.failures.cause()->text == expected);
  });
}

TEST("the root cause ends running, queued and later operations") {
  with_two(2, [](Rank& a, Rank&) {
    std::vector<float> data(10, 1), other(10, 1), in(10);
    const uint64_t ids[] = {a.start(all_reduce(data, 0)), a.start(all_reduce(other, 1)),
                            a.start(message(Verb::Recv, in, 1, 0))};
    a.round();
    a.failures.fail({FailureCode::Aborted, 0, {0}, "enough"});
    for (const uint64_t id : ids) CHECK_EQ(a.text_of(id), "enough");
    const uint64_t late = a.start(all_reduce(data, 2));
    a.round();
    CHECK_EQ(a.text_of(late), "enough");
    CHECK(!a.engine.is_busy());
  });
}

TEST("an abort fails the operations of both ranks") {
  with_two(2, [](Rank& a, Rank& b) {
    std::vector<float> data(10, 1), other(10, 1);
    const uint64_t mine = a.start(all_reduce(data, 0));
    a.round();
    a.requests.abort({FailureCode::Aborted, 0, {0}, "stop, please"});
    const uint64_t theirs = b.start(all_reduce(other, 0));
    for (int i = 0; i < 100'000 && !(a.requests.has_ended(mine) && b.requests.has_ended(theirs)); ++i) {
      a.round();
      b.failures.poll();
      b.round();
    }
    CHECK_EQ(a.text_of(mine), "stop, please");
    CHECK_EQ(b.text_of(theirs), "stop, please");
  });
}

TEST("a blocking call gets its result from the engine, at once if both ranks call on the board") {
  with_two(1, [](Rank& a, Rank& b) {
    // Calls the engine as HostGroup::run does.
    const auto run = [](Rank& rank, std::vector<float>& data, uint64_t seq) {
      Op op = all_reduce(data, seq);
      rank.engine.expect_inline();
      int64_t ended = 0;
      if (rank.engine.run_on_board(op, ended)) {
        CHECK(op.record != 0);
        return;
      }
      const bool has_begun = rank.engine.start_clock();
      if (!has_begun) op.deadline_ns = now_ns() + op.timeout_ns;
      rank.engine.pump(Driver::Caller, has_begun ? nullptr : &op);
      CHECK(rank.engine.inline_result().is_done);
      CHECK_EQ(rank.engine.inline_result().source, -1);
    };
    std::vector<float> one(100, 1), two(100, 2);
    for (uint64_t seq = 0; seq < 20; ++seq) {
      std::fill(one.begin(), one.end(), 1.f);
      std::fill(two.begin(), two.end(), 2.f);
      std::thread other([&] { run(b, two, seq); });
      run(a, one, seq);
      other.join();
      CHECK_EQ(one[99], 3.f);
      CHECK_EQ(two[0], 3.f);
    }
    std::vector<Ended> ended;
    a.requests.take_ended(ended);
    CHECK(ended.empty());
  });
}

TEST("small operations of an oversubscribed host begin on the thread that starts them") {
  with_two(1, [](Rank& a, Rank& b) {
    std::vector<float> one(10, 1), two(10, 2);
    const uint64_t mine = a.start(all_reduce(one, 0)), theirs = b.start(all_reduce(two, 0));
    CHECK(a.engine.nudge());
    CHECK(a.signals.timer_set);
    for (int i = 0; i < 100'000 && !(a.requests.has_ended(mine) && b.requests.has_ended(theirs)); ++i) {
      CHECK(b.engine.nudge());
      CHECK(a.engine.nudge());
    }
    CHECK_EQ(a.text_of(mine) + b.text_of(theirs), "");
    CHECK_EQ(one[0] + two[9], 6.f);
  });
}

int main() { return test::run_all(); }
