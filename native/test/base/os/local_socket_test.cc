// Tests local sockets, and memory files that are sent over them.
#include "base/os/local_socket.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

#include "base/os/host_id.h"
#include "base/os/memory_file.h"
#include "base/os/socket.h"
#include "coll/transport/bootstrap.h"
#include "test/check.h"

using namespace ringwise;

namespace {

bool has_flags(const Fd& fd) {
  return (fcntl(fd.get(), F_GETFL) & O_NONBLOCK) != 0 && (fcntl(fd.get(), F_GETFD) & FD_CLOEXEC) != 0;
}

bool exists(const std::string& path) {
  struct stat status{};
  return stat(path.c_str(), &status) == 0;
}

/// Connects with the listener of a name. Returns an empty Fd, with errno set, if that fails.
Fd connected(const std::string& name) {
  sockaddr_storage address{};
  const socklen_t length = os::local_address(name, address);
  Fd fd = os::open_socket(AF_UNIX);
  return ::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), length) == 0 ? std::move(fd) : Fd();
}

/// Two connected local sockets, as ranks make them.
std::pair<Fd, Fd> pair() {
  coll::Listener listener("127.0.0.1");
  Fd near = connected(listener.unix_name());
  Fd far = os::accept_socket(listener.unix_descriptor());
  CHECK(near && far);
  return {std::move(near), std::move(far)};
}

}  // namespace

#ifndef RINGWISE_SANITIZED  // the undefined-behaviour sanitizer needs descriptors to look at an exception
TEST("the id of the host is the same, or an error when this process has no descriptor left") {
  const std::string id = os::host_id();
  CHECK(!id.empty() && id.size() < 68 && id == os::host_id());
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  const rlimit none{0, before.rlim_max};
  setrlimit(RLIMIT_NOFILE, &none);
  std::string without;
  try {
    without = os::host_id();
  } catch (const std::system_error& error) {
    CHECK_EQ(error.code().value(), EMFILE);
    without = id;
  }
  setrlimit(RLIMIT_NOFILE, &before);
  CHECK_EQ(without, id);
}
#endif

TEST("names differ, and fit into the cards of the C library") {
  const std::string name = os::make_local_name();
  CHECK(name != os::make_local_name());
  CHECK(name.size() < 64);
}

TEST("sockets do not block and are closed in other programs") {
  const auto [near, far] = pair();
  CHECK(has_flags(near));
  CHECK(has_flags(far));
  CHECK(!os::accept_socket(near.get()));
  char byte;
  CHECK(::recv(near.get(), &byte, 1, 0) < 0 && errno == EAGAIN);
  CHECK(!os::receive_descriptor(near.get()));
}

TEST("a connection that has ended raises no signal") {
  signal(SIGPIPE, SIG_DFL);  // which would end this process
  auto [near, far] = pair();
  far.reset();
  CHECK(::send(near.get(), "x", 1, os::kNoSignal) < 0 && errno == EPIPE);
  CHECK(!os::send_descriptor(near.get(), near.get()) && errno == EPIPE);
  CHECK(!os::receive_descriptor(near.get()));
}

TEST("a listener leaves no name, also if it cannot be made or another has its port") {
  std::string name;
  {
    coll::Listener listener("127.0.0.1");
    name = listener.unix_name();
    CHECK(connected(name));
    listener.close();
    listener.close();
    CHECK(!connected(name));
    CHECK(listener.unix_name() == name);
  }
  CHECK(!exists(name));
  {
    const coll::Listener listener("127.0.0.1");
    name = listener.unix_name();
  }
  CHECK(!exists(name));
  CHECK(!connected(name));
  bool has_thrown = false;
  try {
    const coll::Listener listener("203.0.113.1");  // not an address of this machine
  } catch (const std::system_error&) {
    has_thrown = true;
  }
  CHECK(has_thrown);
}

TEST("a memory file arrives at the other end, which shares its zeroed memory") {
  constexpr size_t kBytes = 100'000;  // not whole pages
  const auto [near, far] = pair();
  const Fd file = os::make_memory_file("test", kBytes);
  CHECK(os::send_descriptor(near.get(), file.get()));
  CHECK(os::send_descriptor(near.get(), -1));
  pollfd ready{far.get(), POLLIN, 0};
  CHECK_EQ(::poll(&ready, 1, 20'000), 1);
  const auto received = os::receive_descriptor(far.get());
  CHECK(received && *received && received->get() != file.get());
  CHECK((fcntl(received->get(), F_GETFD) & FD_CLOEXEC) != 0);
  const auto none = os::receive_descriptor(far.get());
  CHECK(none && !*none);
  os::check_memory_file(*received, kBytes);
  std::byte* const mine = os::map_memory_file(file, kBytes);
  std::byte* const theirs = os::map_memory_file(*received, kBytes);
  CHECK(theirs[0] == std::byte{0} && theirs[kBytes - 1] == std::byte{0});
  mine[kBytes - 1] = std::byte{42};
  CHECK(theirs[kBytes - 1] == std::byte{42});
  os::clear_pages(file, mine, 0, kBytes);
  CHECK(theirs[kBytes - 1] == std::byte{0});
  os::unmap(mine, kBytes);
  os::unmap(theirs, kBytes);
}

TEST("a descriptor for which this process has no room is an error, and so is the end of the connection") {
  auto [near, far] = pair();
  CHECK(os::send_descriptor(near.get(), near.get()));
  CHECK(os::send_descriptor(near.get(), -1));
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  const rlimit none{static_cast<rlim_t>(fcntl(near.get(), F_DUPFD_CLOEXEC, 0)), before.rlim_max};
  close(static_cast<int>(none.rlim_cur));  // it was the lowest free one
  setrlimit(RLIMIT_NOFILE, &none);
  const auto without_room = os::receive_descriptor(far.get());
  const int error = errno;
  setrlimit(RLIMIT_NOFILE, &before);
  CHECK(!without_room && error == EMFILE);
  const auto alone = os::receive_descriptor(far.get());
  CHECK(alone && !*alone);
  near.reset();
  CHECK(!os::receive_descriptor(far.get()) && errno == ECONNRESET);
}

TEST("memory of another size, and other files, are refused") {
  const auto refuses = [](const Fd& file, size_t bytes) {
    try {
      os::check_memory_file(file, bytes);
    } catch (const std::system_error&) {
      return true;
    }
    return false;
  };
  constexpr size_t kBytes = 1 << 20;
  const Fd file = os::make_memory_file("test", kBytes);
  CHECK(!refuses(file, kBytes));
  CHECK(refuses(file, kBytes / 2));
  CHECK(refuses(file, 2 * kBytes));
  CHECK(refuses(os::open_socket(AF_UNIX), kBytes));
  CHECK(refuses(Fd(), kBytes));
}

int main() { return test::run_all(); }
