// Tests how ranks agree on one root cause. Their control connections are socket pairs; there are no links and no lane,
// and the test drives all ranks on one thread.
#include <sys/socket.h>

#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "base/time/clock.h"
#include "coll/engine/lane_signals.h"
#include "coll/failure/failure_protocol.h"
#include "test/check.h"

using namespace ringwise;
using coll::Failure;
using coll::FailureCode;
using coll::FailureProtocol;
using coll::Op;
using coll::Signature;
using coll::Verb;

namespace {

/// One rank with its connections. `die` closes them without a goodbye.
struct Rank {
  coll::FlightRecorder flight;
  coll::LaneSignals signals;
  std::vector<std::string> decided;
  int ends = 0;
  coll::Work work;
  std::unique_ptr<coll::Control> control;
  FailureProtocol protocol;

  Rank(int rank, int size, std::vector<Fd> connections)
      : flight(size),
        control(std::make_unique<coll::Control>(std::move(connections), std::vector<int>{}, signals.wake.descriptor())),
        protocol(rank, size, flight, signals.stop,
                 {.decided = [this](const Failure& cause) { decided.push_back(cause.text); },
                  .end_all = [this] { ends++; },
                  .work = [this] { return work; }}) {
    protocol.connect(*control, nullptr);
  }

  void die() {
    protocol.disconnect();
    control.reset();
  }
  std::string cause() const { return protocol.cause() ? protocol.cause()->text : ""; }
};

std::vector<std::unique_ptr<Rank>> ranks_of(int size) {
  std::vector<std::vector<Fd>> connections(size);
  for (auto& mine : connections) mine.resize(size);
  for (int a = 0; a < size; ++a) {
    for (int b = a + 1; b < size; ++b) {
      int ends[2];
      CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
      connections[a][b] = Fd(ends[0]);
      connections[b][a] = Fd(ends[1]);
    }
  }
  std::vector<std::unique_ptr<Rank>> ranks;
  for (int r = 0; r < size; ++r) ranks.push_back(std::make_unique<Rank>(r, size, std::move(connections[r])));
  return ranks;
}

/// Collects the root causes that arrive on a control connection.
struct Announcements final : coll::ControlEvents {
  std::vector<std::string> texts;

  void on_poison(int, Failure failure) override { texts.push_back(failure.text); }
  void on_report(int, Failure) override {}
  void on_left(int) override {}
  void on_dead(int, const char*) override {}
  void on_garbage(int) override {}
  void on_question(int, const Signature&) override {}
  void on_activity(int, const coll::Activity&) override {}
  void on_label_question(int, uint64_t) override {}
};

Failure failure(const std::string& text, FailureCode code = FailureCode::System, int origin = 1) {
  return {code, origin, {origin}, text};
}

Op barrier(uint64_t seq) {
  Op op;
  op.verb = Verb::Barrier;
  op.seq = seq;
  op.timeout_ns = 10'000 * kMillisecond;
  op.deadline_ns = now_ns() + op.timeout_ns;
  return op;
}

}  // namespace

TEST("of several failures, all ranks report the first that reached the lowest rank") {
  const auto ranks = ranks_of(3);
  ranks[2]->protocol.report(failure("disk full"));
  ranks[0]->protocol.poll();
  ranks[1]->protocol.report(failure("out of memory"));
  ranks[0]->protocol.poll();
  for (const auto& rank : ranks) {
    rank->protocol.resolve();
    rank->protocol.poll();
    CHECK_EQ(rank->cause(), "disk full");
    CHECK_EQ(rank->decided.size(), 1u);
    CHECK(rank->ends >= 1);
  }
}

TEST("the root cause stays, and later failures end the remaining operations") {
  const auto ranks = ranks_of(2);
  ranks[0]->protocol.report(failure("first"));
  const int ends = ranks[0]->ends;
  ranks[0]->protocol.report(failure("second"));
  ranks[0]->protocol.fail(failure("third"));
  CHECK_EQ(ranks[0]->cause(), "first");
  CHECK_EQ(ranks[0]->decided.size(), 1u);
  CHECK_EQ(ranks[0]->ends, ends + 2);
}

TEST("without the lowest rank the next one decides") {
  const auto ranks = ranks_of(3);
  ranks[0]->die();
  ranks[1]->protocol.poll();
  ranks[1]->protocol.report(failure("rank 0 is gone"));
  CHECK_EQ(ranks[1]->cause(), "rank 0 is gone");
  ranks[2]->protocol.poll();
  CHECK_EQ(ranks[2]->cause(), "rank 0 is gone");
}

TEST("a report to a rank that dies before it decides goes to the next one") {
  const auto ranks = ranks_of(3);
  ranks[2]->protocol.report(failure("noticed by rank 2"));
  ranks[0]->die();
  ranks[2]->protocol.poll();
  CHECK_EQ(ranks[2]->cause(), "");
  ranks[1]->protocol.poll();
  CHECK_EQ(ranks[1]->cause(), "noticed by rank 2");
  ranks[2]->protocol.resolve();
  CHECK_EQ(ranks[2]->cause(), "noticed by rank 2");
}

TEST("a rank decides itself when the lowest one does not answer") {
  const auto ranks = ranks_of(2);
  ranks[1]->protocol.report(failure("nobody else noticed"));
  const int64_t before = now_ns();
  ranks[1]->protocol.resolve();
  CHECK(now_ns() - before < 5'000 * kMillisecond);
  CHECK_EQ(ranks[1]->cause(), "nobody else noticed");
  ranks[0]->protocol.poll();
  CHECK_EQ(ranks[0]->cause(), "nobody else noticed");
}

TEST("a rank that learns of the root cause when it was about to decide announces no other one") {
  const auto ranks = ranks_of(3);
  const int64_t start = now_ns();
  ranks[1]->protocol.report(failure("noticed by rank 1"));
  ranks[0]->protocol.report(failure("noticed by rank 0"));
  // Rank 1 waits 250 ms for the root cause before it decides itself.
  while (now_ns() < start + 260 * kMillisecond) std::this_thread::yield();
  ranks[1]->protocol.resolve();
  CHECK_EQ(ranks[1]->cause(), "noticed by rank 0");
  Announcements seen;
  ranks[2]->control->poll(seen);
  CHECK(seen.texts == std::vector<std::string>{"noticed by rank 0"});
}

TEST("stopping ends the wait for a root cause") {
  const auto ranks = ranks_of(2);
  ranks[1]->protocol.report(failure("late"));
  ranks[1]->signals.stop = true;
  ranks[1]->protocol.resolve();
  CHECK_EQ(ranks[1]->cause(), "");
}

TEST("a rank that said goodbye is no loss; one that did not is reported a moment later") {
  const auto ranks = ranks_of(3);
  ranks[1]->control->say_goodbye();
  ranks[1]->die();
  ranks[0]->protocol.poll();
  CHECK(!ranks[0]->protocol.diagnosis().is_here(1));
  CHECK(ranks[0]->protocol.known() == nullptr);
  ranks[2]->die();
  ranks[0]->protocol.poll();
  CHECK(!ranks[0]->protocol.diagnosis().is_here(2));
  CHECK(ranks[0]->protocol.known() == nullptr);
  std::this_thread::sleep_for(std::chrono::milliseconds(150));  // known() tells of a loss after 100 ms
  const auto loss = ranks[0]->protocol.known();
  CHECK(loss != nullptr && loss->code == FailureCode::PeerLost && loss->peers == std::vector<int>{2});
  CHECK_EQ(ranks[0]->cause(), "");  // no operation needed rank 2, so its loss fails nothing
}

TEST("a later loss is reported beside the first one") {
  const auto ranks = ranks_of(3);
  ranks[2]->die();
  ranks[0]->protocol.poll();
  std::this_thread::sleep_for(std::chrono::milliseconds(150));
  CHECK(ranks[0]->protocol.known()->peers == std::vector<int>{2});
  ranks[1]->die();
  ranks[0]->protocol.poll();
  const auto loss = ranks[0]->protocol.known();
  CHECK(loss->peers == (std::vector<int>{2, 1}));
  CHECK_EQ(loss->text, "lost rank 2 (its connection closed), lost rank 1 (its connection closed)");
  ranks[0]->protocol.report(failure("late"));
  CHECK_EQ(ranks[0]->protocol.known()->text, "late");
  CHECK(ranks[0]->protocol.losses() == loss);
}

TEST("a failure names all of its ranks to the others, however many they are") {
  const auto ranks = ranks_of(2);
  std::vector<int> many(1000);
  std::iota(many.begin(), many.end(), 0);
  ranks[0]->protocol.report({FailureCode::Timeout, 0, many, std::string(5000, 'x')});
  ranks[1]->protocol.poll();
  CHECK(ranks[1]->protocol.cause()->peers == many);
  CHECK_EQ(ranks[1]->protocol.cause()->text, std::string(2048, 'x'));
}

TEST("bytes that are no frame end the connection, and the rank counts as lost") {
  int ends[2];
  CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  std::vector<Fd> connections(2);
  connections[1] = Fd(ends[0]);
  Fd other(ends[1]);
  Rank rank(0, 2, std::move(connections));
  const std::string noise(64, '\xff');
  CHECK_EQ(::send(other.get(), noise.data(), noise.size(), 0), static_cast<ssize_t>(noise.size()));
  rank.protocol.poll();
  CHECK(!rank.protocol.diagnosis().is_here(1));
  std::this_thread::sleep_for(std::chrono::milliseconds(150));
  const auto loss = rank.protocol.known();
  CHECK_EQ(loss ? loss->text : "", "lost rank 1 (it sent something that is no ringwise frame)");
}

TEST("ranks that do not read delay the root cause of no other rank, and those that never do notice an end") {
  Fd far[4];
  std::vector<Fd> near(4);
  for (int peer = 1; peer < 4; ++peer) {
    int ends[2];
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    near[peer] = Fd(ends[0]);
    far[peer] = Fd(ends[1]);
  }
  coll::LaneSignals signals;
  coll::Control control(std::move(near), {}, signals.wake.descriptor());
  for (int i = 0; i < 10'000; ++i) {  // which fills the sockets to these two
    control.ring(1);
    control.ring(2);
  }
  std::thread announcing([&] { control.poison(failure("disk full")); });
  char byte;
  CHECK_EQ(::recv(far[3].get(), &byte, 1, 0), 1);
  // Only now rank 1 reads.
  std::vector<Fd> back(4);
  back[0] = std::move(far[1]);
  coll::Control late(std::move(back), {}, signals.wake.descriptor());
  Announcements heard;
  for (int i = 0; i < 500 && heard.texts.empty(); ++i) {
    late.poll(heard);
    late.wait(10 * kMillisecond);
  }
  CHECK(heard.texts == std::vector<std::string>{"disk full"});
  announcing.join();
  while (::recv(far[2].get(), &byte, 1, MSG_DONTWAIT) > 0) {
  }
  CHECK_EQ(::recv(far[2].get(), &byte, 1, MSG_DONTWAIT), 0);  // the end of the connection
}

TEST("a question about another operation of the same number is a mismatch that both ranks get") {
  const auto ranks = ranks_of(2);
  const Signature mine = signature_of(barrier(5), 0, 2);
  Op other = barrier(5);
  other.verb = Verb::AllReduce;
  other.count = 4;
  const Signature theirs = signature_of(other, 1, 2);
  ranks[0]->protocol.diagnosis().remember(mine);
  ranks[1]->protocol.diagnosis().ask(*ranks[1]->control, std::vector<int>{0}, theirs, now_ns());
  ranks[0]->protocol.poll();
  ranks[0]->protocol.resolve();
  ranks[1]->protocol.poll();
  CHECK_EQ(ranks[0]->cause(), ranks[1]->cause());
  CHECK(ranks[0]->cause().find("rank 0 called barrier") != std::string::npos);
  CHECK(ranks[0]->cause().find("rank 1 called allReduce") != std::string::npos);
}

TEST("a late rank tells its operation, and the timeout's error names it") {
  const auto ranks = ranks_of(2);
  Op op = barrier(7);
  ranks[0]->work = {ranks[0]->flight.enter(op), 8};
  ranks[1]->protocol.diagnosis().ask(*ranks[1]->control, std::vector<int>{0}, signature_of(barrier(9), 1, 2), now_ns());
  ranks[0]->protocol.poll();
  ranks[1]->protocol.poll();
  const Failure late = ranks[1]->protocol.diagnosis().late(barrier(9), {0}, now_ns());
  CHECK(late.code == FailureCode::Timeout);
  CHECK(late.text.find("rank 0") != std::string::npos);
  CHECK(late.text.find("barrier #7") != std::string::npos);
}

TEST("a mismatch is unreported until an operation ends with it; other failures never are") {
  const auto ranks = ranks_of(2);
  ranks[0]->protocol.report(failure("roots differ", FailureCode::Mismatch));
  CHECK(ranks[0]->protocol.unreported_mismatch() != nullptr);
  ranks[0]->protocol.note_reported();
  CHECK(ranks[0]->protocol.unreported_mismatch() == nullptr);
  ranks[1]->protocol.fail(failure("disk full"));
  CHECK(ranks[1]->protocol.unreported_mismatch() == nullptr);
}

TEST("the error of a link that breaks because the rank has left says that") {
  const auto ranks = ranks_of(2);
  const Signature running = signature_of(barrier(3), 1, 2);
  const Failure broken{FailureCode::PeerLost, 1, {0}, "broken pipe"};
  CHECK_EQ(ranks[1]->protocol.reason_of(broken, &running).text, "broken pipe");  // rank 0 has not left
  ranks[0]->control->say_goodbye();
  ranks[0]->die();
  const std::string text = ranks[1]->protocol.reason_of(broken, &running).text;
  CHECK(text.find("rank 0") != std::string::npos && text.find("barrier") != std::string::npos);
}

int main() { return test::run_all(); }
