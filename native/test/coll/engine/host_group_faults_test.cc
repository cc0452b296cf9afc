// Tests what misbehaving ranks, dying ranks and unauthenticated connections can do to a group, down to single bytes on
// its sockets.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>

#include "base/os/wakeup.h"
#include "base/time/clock.h"
#include "test/check.h"
#include "test/coll/ranks.h"

using namespace ringwise;
using namespace ringwise::test;
using coll::FailureCode;
using coll::Verb;

namespace {

Op transfer(Verb verb, std::vector<float>& data, int peer) {
  Op op = all_reduce(data, DType::Float32, 0);
  op.verb = verb;
  op.root = peer;
  return op;
}

int64_t processor_ns() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return time.tv_sec * 1'000'000'000LL + time.tv_nsec;
}

void pause_ms(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

/// The 52 bytes that begin every connection; transport/bootstrap.cc defines them.
struct Hello {
  uint32_t magic = 0x48475752;
  uint8_t version = 1;
  uint8_t purpose;  // 0 control, 1 data of collectives, 2 sends and receives
  uint8_t reserved[2]{};
  int32_t from;
  int32_t to;
  int32_t host;
  coll::Proof proof;
};

Fd dial(uint16_t port) {
  Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return {};
  return fd;
}

void write_all(const Fd& fd, const void* bytes, size_t count) {
  CHECK_EQ(::send(fd.get(), bytes, count, MSG_NOSIGNAL), static_cast<ssize_t>(count));
}

/// Reads until `expected` bytes have arrived or the connection has ended. Returns the number of bytes.
size_t read_all(const Fd& fd, char* bytes, size_t expected) {
  size_t count = 0;
  while (count < expected) {
    const ssize_t got = ::recv(fd.get(), bytes + count, expected - count, 0);
    if (got <= 0) break;
    count += static_cast<size_t>(got);
  }
  return count;
}

/// Opens a connection to rank 0, as rank 1 of 2 does.
Fd connect_as_rank_1(uint16_t port, uint8_t purpose) {
  Fd fd = dial(port);
  const Hello hello{.purpose = purpose, .from = 1, .to = 0, .host = 1, .proof = proof(1, 0)};
  write_all(fd, &hello, sizeof hello);
  char answer[sizeof hello];
  CHECK_EQ(read_all(fd, answer, sizeof answer), sizeof answer);
  return fd;
}

coll::PeerAddress remote(const HostGroup& group, int self, int peer) {
  return {peer, false, "", "127.0.0.1", group.listener().port(), proof(self, peer), proof(peer, self)};
}

/// Rank 0 of a group of 2, and the connections of rank 1, on which the test itself writes the bytes.
struct WithoutRank1 {
  HostGroup group{0, 2, "127.0.0.1", [] {}};
  Fd control, data, messages;

  WithoutRank1() {
    const auto connecting = group.connect({remote(group, 0, 1)}, kTimeout);
    control = connect_as_rank_1(group.listener().port(), 0);
    data = connect_as_rank_1(group.listener().port(), 1);
    messages = connect_as_rank_1(group.listener().port(), 2);
    group.wait(connecting);
  }

  /// Shuts down the connections for control and for data instead of closing them: with unread bytes from rank 0, a
  /// close would send a reset.
  void end() {
    shutdown(data.get(), SHUT_WR);
    shutdown(control.get(), SHUT_WR);
  }

  /// Waits for operation `id` and returns how it ended. It must be the only operation, and must end within a second.
  coll::Ended end_of(uint64_t id) {
    const int64_t start = now_ns();
    group.wait(id);
    CHECK(now_ns() - start < 1'000 * kMillisecond);
    std::vector<coll::Ended> ended;
    group.take_ended(ended);
    CHECK_EQ(ended.size(), 2u);  // the connecting, and the operation
    return ended.back();
  }
};

/// Returns a connected pair of TCP sockets. The buffers of the second are as small as the system allows.
std::pair<Fd, Fd> narrow_pair() {
  Fd listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int small = 1;
  setsockopt(listener.get(), SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
  setsockopt(listener.get(), SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  CHECK_EQ(bind(listener.get(), reinterpret_cast<sockaddr*>(&address), length), 0);
  CHECK_EQ(listen(listener.get(), 1), 0);
  getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &length);
  Fd one = dial(ntohs(address.sin_port));
  Fd other(accept(listener.get(), nullptr, nullptr));
  return {std::move(one), std::move(other)};
}

struct DeathsOnly : coll::ControlEvents {
  std::vector<int> dead;
  void on_report(int, coll::Failure) override {}
  void on_poison(int, coll::Failure) override {}
  void on_left(int) override {}
  void on_dead(int peer, const char*) override { dead.push_back(peer); }
  void on_garbage(int peer) override { dead.push_back(peer); }
  void on_question(int, const coll::Signature&) override {}
  void on_label_question(int, uint64_t) override {}
  void on_activity(int, const coll::Activity&) override {}
};

}  // namespace

TEST("a lane that waits with operations in its queue leaves the processor alone") {
  with_ranks(2, one_host, [](Rank& rank) {
    if (rank.rank == 0) {
      const auto first = rank.group->start(barrier(0));
      const auto second = rank.group->start(barrier(1));
      pause_ms(100);
      const int64_t before = processor_ns();
      pause_ms(300);
      CHECK(processor_ns() - before < 100 * kMillisecond);
      rank.group->wait(first);
      rank.group->wait(second);
    } else {
      pause_ms(600);
      CHECK_EQ(rank.run(barrier(0)), "");
      CHECK_EQ(rank.run(barrier(1)), "");
    }
  });
}

TEST("a queued operation fails at its own deadline, although another one runs") {
  std::atomic<bool> failed{false};
  with_ranks(2, one_host, [&](Rank& rank) {
    if (rank.rank == 1) {
      sleep_until([&] { return failed.load(); });
      return;
    }
    rank.group->start(barrier(0));
    Op late = barrier(1);
    late.timeout_ns = 200 * kMillisecond;
    const int64_t start = now_ns();
    const auto failure = rank.group->run(late);
    CHECK(failure != nullptr && failure->code == FailureCode::Timeout);
    CHECK(failure != nullptr && failure->peers == std::vector<int>{1});
    CHECK(now_ns() - start < 5'000 * kMillisecond);
    failed = true;
  });
}

TEST("sending to a rank that is known to be lost fails on the calling thread") {
  with_ranks(2, own_host, [](Rank& rank) {
    if (rank.rank == 1) return rank.group.reset();
    const auto failure = rank.group->run(barrier(0));
    CHECK(failure != nullptr && failure->code == FailureCode::PeerLost);
    std::vector<float> data(8);
    CHECK_EQ(rank.run(transfer(Verb::Send, data, 1)), failure ? failure->text : "");
  });
  with_ranks(2, own_host, [](Rank& rank) {
    if (rank.rank == 1) return rank.group.reset();
    pause_ms(300);  // long enough for the idle lane to notice the loss, so that the send is the first to report it
    std::vector<float> data(8);
    const auto failure = rank.group->run(transfer(Verb::Send, data, 1));
    CHECK(failure != nullptr && failure->code == FailureCode::PeerLost);
  });
}

TEST("a lost rank is noticed on an oversubscribed machine too") {
  std::atomic<bool> over{false};
  std::vector<std::thread> spinners;
  for (unsigned i = 0; i < 2 * std::thread::hardware_concurrency(); ++i) {
    spinners.emplace_back([&] {
      while (!over) continue;
    });
  }
  with_ranks(3, two_per_host, [](Rank& rank) {
    CHECK_EQ(rank.run(barrier(0)), "");
    if (rank.rank == 1) return rank.group.reset();
    const int64_t start = now_ns();
    const auto failure = rank.group->run(barrier(1));
    CHECK(failure != nullptr && failure->code == FailureCode::PeerLost);
    CHECK(now_ns() - start < 1'500 * kMillisecond);
  });
  over = true;
  for (auto& thread : spinners) thread.join();
}

TEST("a rank that is lost in the middle of a signature is not waited for") {
  WithoutRank1 zero;
  const auto waiting = zero.group.start(barrier(0));
  char signature[64];
  CHECK_EQ(read_all(zero.data, signature, sizeof signature), sizeof signature);
  write_all(zero.data, signature, 20);
  zero.end();
  const auto failure = zero.end_of(waiting).failure;
  CHECK(failure && failure->code == FailureCode::PeerLost);
}

TEST("an invalid frame, half a frame, a frame that is too long, or no signature fails the group with the reason") {
  const auto frame = [](uint16_t kind, uint16_t bytes, size_t sent) {
    std::string text(4 + sent, '\x5a');
    std::memcpy(text.data(), &kind, 2);
    std::memcpy(text.data() + 2, &bytes, 2);
    return text;
  };
  const struct {
    std::string bytes;
    bool on_data, ends;
    const char* text;
  } cases[] = {
      // The frame is too long.
      {frame(1, 65'000, 100), false, false, "lost rank 1 (it sent something that is no ringwise frame)"},
      // No frame has this kind.
      {frame(77, 0, 0), false, false, "lost rank 1 (it sent something that is no ringwise frame)"},
      {frame(4, 10, 10), false, false,
       "lost rank 1 (it sent something that is no ringwise frame)"},  // a question of 10 bytes
      {frame(1, 3, 3), false, false,
       "lost rank 1 (it sent something that is no ringwise frame)"},             // a failure of 3 bytes
      {frame(2, 2'000, 7), false, true, "lost rank 1 (its connection closed)"},  // half a frame
      {std::string(64, '\x5a'), true, false,
       "rank 0 called barrier (seq 0) but rank 1 called something that is no ringwise operation"},
      {std::string(20, '\x5a'), true, true, "lost rank 1 (its connection closed)"},
  };
  for (const auto& one : cases) {
    WithoutRank1 zero;
    const auto waiting = zero.group.start(barrier(0));
    write_all(one.on_data ? zero.data : zero.control, one.bytes.data(), one.bytes.size());
    if (one.ends) zero.end();
    const auto failure = zero.end_of(waiting).failure;
    CHECK_EQ(failure ? failure->text : "", one.text);
  }
}

TEST("a rank is lost if one of its connections is cut") {
  for (Fd WithoutRank1::* cut : {&WithoutRank1::control, &WithoutRank1::data}) {
    WithoutRank1 zero;
    const auto waiting = zero.group.start(barrier(0));
    const linger at_once{.l_onoff = 1, .l_linger = 0};  // the system sends a reset instead of an orderly end
    CHECK_EQ(setsockopt((zero.*cut).get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once), 0);
    (zero.*cut).reset();
    const auto failure = zero.end_of(waiting).failure;
    CHECK(failure && failure->code == FailureCode::PeerLost && failure->peers == std::vector<int>{1});
  }
}

TEST("unauthenticated connections neither keep a group from connecting nor are accepted later") {
  HostGroup zero(0, 2, "127.0.0.1", [] {}), one(1, 2, "127.0.0.1", [] {});
  const uint16_t port = zero.listener().port();
  std::vector<Fd> connections;
  for (int i = 0; i < 600; ++i) {
    Fd fd = dial(port);
    if (!fd) break;  // the process has no more file descriptors
    const Hello hello{.purpose = static_cast<uint8_t>(i), .from = 1, .to = 0, .host = 1, .proof = proof(i % 7, 5)};
    std::string junk(1000, static_cast<char>(i));
    if (i % 4 == 1) write_all(fd, &hello, sizeof hello);
    if (i % 4 == 2) write_all(fd, &hello, sizeof hello / 2);
    if (i % 4 == 3) write_all(fd, junk.data(), junk.size());
    connections.push_back(std::move(fd));
  }
  const auto meeting = zero.connect({remote(one, 0, 1)}, kTimeout);
  const auto meeting_too = one.connect({remote(zero, 1, 0)}, kTimeout);
  zero.wait(meeting);
  one.wait(meeting_too);
  std::thread other([&] { CHECK(one.run(barrier(0)) == nullptr); });
  CHECK(zero.run(barrier(0)) == nullptr);
  other.join();
  CHECK(!dial(port));
  CHECK_EQ(errno, ECONNREFUSED);
}

#ifndef RINGWISE_SANITIZED
// Left out with sanitizers: their check of a virtual table opens a pipe, and takes every object for invalid if it
// cannot.
TEST("a rank that has no descriptor left for a connection says so before its deadline") {
  Rank rank{0, 2, std::make_unique<HostGroup>(0, 2, "127.0.0.1", [] {})};
  const Fd peer = dial(rank.group->listener().port());
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  const rlimit none{static_cast<rlim_t>(fcntl(peer.get(), F_DUPFD_CLOEXEC, 0)), before.rlim_max};
  close(static_cast<int>(none.rlim_cur));  // it was the lowest free one
  setrlimit(RLIMIT_NOFILE, &none);
  const coll::PeerAddress one{1, false, "", "127.0.0.1", 1, proof(0, 1), proof(1, 0)};
  const auto failure = rank.finish(rank.group->connect({one}, kTimeout));
  setrlimit(RLIMIT_NOFILE, &before);
  CHECK(failure != nullptr && failure->code == FailureCode::System);
  CHECK_EQ(failure->text, "connecting: accepting a connection of another rank: Too many open files");
}
#endif

TEST("a rank that ends before it has connected is lost for all that wait for it, long before their deadline") {
  for (const bool local : {true, false}) {
    std::unique_ptr<HostGroup> groups[3];
    for (int rank = 0; rank < 3; ++rank) groups[rank] = std::make_unique<HostGroup>(rank, 3, "127.0.0.1", [] {});
    const auto peers_of = [&](int rank) {
      std::vector<coll::PeerAddress> peers;
      for (int peer = 0; peer < 3; ++peer) {
        if (peer == rank) continue;
        const coll::Listener& listener = groups[peer]->listener();
        peers.push_back(
            {peer, local, listener.unix_name(), "127.0.0.1", listener.port(), proof(rank, peer), proof(peer, rank)});
      }
      return peers;
    };
    const auto of_first = peers_of(0), of_last = peers_of(2);
    groups[1].reset();
    Rank first{0, 3, std::move(groups[0])}, last{2, 3, std::move(groups[2])};
    const uint64_t first_id = first.group->connect(of_first, kTimeout);
    const auto refused = last.finish(last.group->connect(of_last, kTimeout));
    CHECK(refused != nullptr && refused->code == FailureCode::PeerLost);
    CHECK_EQ(refused->text, "lost rank 1 while connecting (nothing listens at its address any more)");
    const auto told = first.finish(first_id);
    CHECK(told != nullptr && told->code == FailureCode::PeerLost);
    CHECK_EQ(told->text, "lost rank 2 while connecting (its connection closed before that of rank 1 came)");
  }
}

TEST("a group can be destroyed while it connects with ranks that never come") {
  for (const int self : {0, 1}) {
    HostGroup absent(1 - self, 2, "127.0.0.1", [] {});
    auto group = std::make_unique<HostGroup>(self, 2, "127.0.0.1", [] {});
    group->connect({remote(absent, self, 1 - self)}, kTimeout);
    pause_ms(20);
    const int64_t start = now_ns();
    group.reset();
    CHECK(now_ns() - start < 1'000 * kMillisecond);
  }
}

TEST("a rank that aborts and ends at once has told the others why") {
  for (const auto& host_of : {one_host, own_host}) {
    for (int repeat = 0; repeat < 30; ++repeat) {
      with_ranks(3, host_of, [](Rank& self) {
        uint64_t seq = 0;
        if (self.rank == 1) {
          CHECK_EQ(self.run(barrier(seq)), "");
          self.group->abort({FailureCode::Aborted, 1, {1}, "enough"});
          self.group.reset();
          return;
        }
        std::string text;
        while (text.empty()) text = self.run(barrier(seq++));
        CHECK_EQ(text, "enough");
      });
    }
  }
}

TEST("a frame that cannot be sent whole ends the connection, so that no later bytes are read as its rest") {
  auto [near, far] = narrow_pair();
  os::Wakeup wake;
  std::vector<Fd> connections(2);
  connections[1] = std::move(near);
  coll::Control control(std::move(connections), {}, wake.descriptor());
  const coll::Failure failure(FailureCode::Aborted, 0, {0}, std::string(1999, 'x'));
  DeathsOnly events;
  size_t frames = 0;
  for (; events.dead.empty() && frames < 10'000; ++frames) {
    control.report(1, failure);  // the other end does not read, so the buffers fill up
    control.poll(events);
  }
  CHECK_EQ(events.dead.size(), 1u);
  std::vector<char> received(frames * 4096);
  pollfd ready{far.get(), POLLIN, 0};
  CHECK_EQ(::poll(&ready, 1, 5'000), 1);
  // All frames together are shorter, so read_all() returns only because the connection has ended.
  CHECK(read_all(far, received.data(), received.size()) < received.size());
}

int main() { return run_all(); }
