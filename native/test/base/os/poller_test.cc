// Tests what the progress engine relies on when it sleeps: which events end a wait, and how often.
#include "base/os/poller.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <thread>
#include <vector>

#include "base/os/wakeup.h"
#include "base/time/clock.h"
#include "test/check.h"

using namespace ringwise;

namespace {

constexpr int kLong = 20'000;  // ms; a wait that ends by it fails the test

struct Pair {
  Pair() {
    int ends[2];
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    near = Fd(ends[0]);
    far = Fd(ends[1]);
  }
  void write() const { CHECK_EQ(::send(far.get(), "x", 1, 0), 1); }
  void read() const {
    char byte;
    CHECK_EQ(::recv(near.get(), &byte, 1, 0), 1);
  }
  /// Sends bytes until no more fit; returns their number.
  size_t fill() const {
    const std::vector<char> bytes(4096);
    size_t sent = 0;
    for (ssize_t n = 0; (n = ::send(near.get(), bytes.data(), bytes.size(), MSG_DONTWAIT)) > 0;) sent += n;
    return sent;
  }
  void drain(size_t bytes) const {
    std::vector<char> got(4096);
    while (bytes > 0) bytes -= ::recv(far.get(), got.data(), std::min(bytes, got.size()), 0);
  }

  Fd near, far;
};

std::vector<int64_t> wait(os::Poller& poller, int timeout_ms) {
  std::array<int64_t, os::Poller::kMost> tags{};
  const size_t count = poller.wait(tags, timeout_ms);
  return {tags.begin(), tags.begin() + static_cast<std::ptrdiff_t>(count)};
}

using Tags = std::vector<int64_t>;

/// Returns whether a wait for all ends before its time.
bool ends_early(os::Poller& poller, int timeout_ms = kLong) {
  const int64_t before = now_ns();
  poller.wait_for_all(timeout_ms);
  return now_ns() - before < timeout_ms * kMillisecond / 2;
}

/// Lets pass the changes so far.
void settle(os::Poller& poller) {
  while (ends_early(poller, 20)) {
  }
}

}  // namespace

TEST("what can be read is reported until it is read, with its tag") {
  os::Poller poller;
  const Pair first, second;
  poller.watch(first.near.get(), 7);
  poller.watch(second.near.get(), -1);
  CHECK(wait(poller, 0).empty());
  second.write();
  CHECK(wait(poller, kLong) == Tags{-1});
  CHECK(wait(poller, kLong) == Tags{-1});
  second.read();
  CHECK(wait(poller, 0).empty());
  first.write();
  CHECK(wait(poller, kLong) == Tags{7});
}

TEST("the end of a connection is reported, and nothing after it was forgotten") {
  os::Poller poller;
  Pair pair;
  poller.watch(pair.near.get(), 3);
  pair.far.reset();
  CHECK(wait(poller, kLong) == Tags{3});
  poller.forget(pair.near.get());
  CHECK(wait(poller, 0).empty());
  poller.forget(pair.near.get());  // forgotten already
  pair.near.reset();
  CHECK(wait(poller, 0).empty());
}

TEST("changes end a wait once each, until there is another") {
  os::Poller poller;
  const Pair pair;
  poller.watch_changes(pair.near.get());
  settle(poller);  // that it can be written now
  for (int i = 0; i < 3; ++i) {
    pair.write();  // the bytes before it have not been read
    CHECK(ends_early(poller));
    settle(poller);
  }
  CHECK(wait(poller, 0).empty());
}

TEST("room for more to write is a change") {
  os::Poller poller;
  const Pair pair;
  poller.watch_changes(pair.near.get());
  const size_t sent = pair.fill();
  settle(poller);
  std::thread reader([&] { pair.drain(sent); });
  CHECK(ends_early(poller));
  reader.join();
}

TEST("a timer ends a wait once, each time that it is set, from any thread") {
  os::Poller poller;
  const auto idles_early = [&] {
    const int64_t before = now_ns();
    CHECK(wait(poller, kLong).empty());
    return now_ns() - before < kLong / 2 * kMillisecond;
  };
  for (int i = 0; i < 3; ++i) {
    std::thread([&] { poller.set_timer(2 * kMillisecond); }).join();
    CHECK(idles_early());
    const int64_t before = now_ns();
    CHECK(wait(poller, 20).empty());  // not once more
    CHECK(now_ns() - before >= 19 * kMillisecond);
  }
  poller.set_timer(900 * kMillisecond);
  poller.set_timer(1 * kMillisecond);  // replaces it
  CHECK(idles_early());
  poller.set_timer(1 * kMillisecond);
  CHECK(ends_early(poller));
}

TEST("a wait for all ends for what a wait reports, and leaves it to be reported") {
  os::Poller poller;
  const Pair pair;
  poller.watch(pair.near.get(), 1);
  settle(poller);
  std::thread writer([&] { pair.write(); });
  CHECK(ends_early(poller));
  writer.join();
  CHECK(ends_early(poller));
  CHECK(wait(poller, 0) == Tags{1});
  pair.read();
  settle(poller);
  pair.write();
  CHECK(ends_early(poller));
  poller.forget(pair.near.get());
  settle(poller);
  CHECK(wait(poller, 0).empty());
}

TEST("a wake-up ends waits until it is silenced, however often it rang") {
  os::Poller poller;
  os::Wakeup wakeup;
  poller.watch(wakeup.descriptor(), 4);
  CHECK(wait(poller, 0).empty());
  for (int i = 0; i < 100'000; ++i) wakeup.ring();  // more than a pipe holds
  CHECK(wait(poller, kLong) == Tags{4});
  wakeup.silence();
  CHECK(wait(poller, 0).empty());
  wakeup.silence();  // nothing to take back
  std::thread ringing([&] { wakeup.ring(); });
  CHECK(wait(poller, kLong) == Tags{4});
  CHECK(ends_early(poller));
  ringing.join();
  wakeup.wait();  // ends at once, and takes the ring back
  pollfd ready{wakeup.descriptor(), POLLIN, 0};
  CHECK_EQ(::poll(&ready, 1, 0), 0);
}

int main() { return test::run_all(); }
