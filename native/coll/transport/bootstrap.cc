#include "coll/transport/bootstrap.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <system_error>

#include "base/os/local_socket.h"
#include "base/os/socket.h"
#include "base/time/clock.h"
#include "coll/failure/failure.h"

namespace ringwise::coll {

namespace {

enum class Purpose : uint8_t { Control, Data, PointToPoint };

struct Hello {
  uint32_t magic;
  uint8_t version;
  Purpose purpose;
  uint8_t reserved[2];
  int32_t from;
  int32_t to;
  int32_t host;  // the lowest rank on the sender's host
  Proof proof;
};
static_assert(sizeof(Hello) == 52);

constexpr uint32_t kMagic = 0x48475752;  // "RWGH"
constexpr uint8_t kVersion = 1;
constexpr int kBacklog = 4096;
// Nanoseconds within which a connection must authenticate its peer, and the maximum number of unauthenticated
// connections. A new one replaces the oldest, because ranks send their hello as soon as they are connected.
constexpr int64_t kHelloNs = 5'000 * kMillisecond;
constexpr size_t kMaxUnauthenticated = 256;
// Nanoseconds for which a rank may refuse connections. It listens before it tells its address, so it has ended, unless
// its backlog is full, which some systems answer in the same way.
constexpr int64_t kRefusedNs = 2'000 * kMillisecond;
// Nanoseconds between two attempts of a rank to find out whether another one that has not connected still listens. All
// lower ranks may wait for the same one, so they grow with the number of ranks.
constexpr int64_t kProbeNs = 500 * kMillisecond;
constexpr int64_t kProbePerRankNs = 10 * kMillisecond;

[[noreturn]] void fail(const char* what) { throw std::system_error(errno, std::generic_category(), what); }

/// Returns whether accept_socket() fails again at once: the connection stays in the backlog until this process has
/// resources. Other errors are those of the connection, which the kernel has dropped.
bool is_lack(int error) { return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM; }

/// Returns whether connect() has failed because nothing listens at the address.
bool is_refusal(int error) { return error == ECONNREFUSED || error == ENOENT; }

/// Returns whether a connection has ended and all that the peer has sent is read.
bool has_ended(const Fd& fd) {
  char byte;
  const ssize_t got = ::recv(fd.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
}

bool equal_in_constant_time(const Proof& a, const Proof& b) {
  uint8_t difference = 0;
  for (size_t i = 0; i < a.size(); ++i) difference |= static_cast<uint8_t>(a[i] ^ b[i]);
  return difference == 0;
}

struct Address {
  sockaddr_storage storage{};
  socklen_t length = 0;
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
};

Address tcp_address(const std::string& host, uint16_t port) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) {
    throw std::system_error(EINVAL, std::generic_category(), "\"" + host + "\" is not an IP address");
  }
  Address address;
  address.length = found->ai_addrlen;
  std::memcpy(&address.storage, found->ai_addr, found->ai_addrlen);
  freeaddrinfo(found);
  return address;
}

Address local_address(const std::string& name) {
  Address address;
  address.length = os::local_address(name, address.storage);
  return address;
}

void tune_tcp(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  os::notice_vanished_host(fd);
}

/// Connects one rank with all others. Every wait is a poll() that ends at the deadline or when `wake` becomes readable.
class Meeting {
 public:
  Meeting(const Listener& listener, int rank, const std::vector<PeerAddress>& peers, int64_t deadline_ns, int wake)
      : listener_(listener), rank_(rank), deadline_ns_(deadline_ns), wake_(wake) {
    for (const auto& peer : peers) peers_[peer.rank] = peer;
    const size_t size = peers.size() + 1;
    connections_.control.resize(size);
    connections_.data.resize(size);
    connections_.p2p.resize(size);
    host_ = rank;
    for (const auto& peer : peers) {
      if (peer.local) host_ = std::min(host_, peer.rank);
    }
    connections_.hosts.assign(size, host_);
  }

  Connections run() {
    // A rank connects to all lower ranks before it accepts higher ones, so no ranks wait for each other in a circle.
    for (auto& [rank, peer] : peers_) {
      if (rank >= rank_) continue;
      connections_.control[rank] = connect_to(peer, Purpose::Control);
      if (peer.local) continue;
      connections_.data[rank] = connect_to(peer, Purpose::Data);
      connections_.p2p[rank] = connect_to(peer, Purpose::PointToPoint);
    }
    accept_higher_ranks();
    share_segment();
    return std::move(connections_);
  }

 private:
  /// Waits until `fd` is ready for `events`. Throws a timeout that names the ranks `missing` when the deadline comes
  /// first.
  void await(int fd, short events, const std::vector<int>& missing) {
    pollfd fds[2] = {{fd, events, 0}, {wake_, POLLIN, 0}};
    for (;;) {
      const int64_t left = deadline_ns_ - now_ns();
      if (left <= 0) throw timeout(missing);
      const int ready = poll(fds, 2, static_cast<int>(left / kMillisecond) + 1);
      if (ready < 0 && errno != EINTR) fail("poll");
      if (fds[1].revents != 0)
        throw Failure(FailureCode::Closed, rank_, {rank_}, "the group was closed while it was connecting");
      if (fds[0].revents != 0) return;
    }
  }

  static std::string list(const std::vector<int>& ranks) {
    std::string names;
    for (const int rank : ranks) names += (names.empty() ? "" : ", ") + std::to_string(rank);
    return (ranks.size() == 1 ? "rank " : "ranks ") + names;
  }

  Failure timeout(const std::vector<int>& missing) const {
    return {FailureCode::Timeout, rank_, missing, "no connection with " + list(missing)};
  }

  Failure ended_before(int peer, const std::vector<int>& missing) const {
    return {FailureCode::PeerLost,
            rank_,
            {peer},
            "lost rank " + std::to_string(peer) + " while connecting (its connection closed before that of " +
                list(missing) + " came)"};
  }

  void write_all(int fd, const void* data, size_t bytes, int peer) {
    const auto* at = static_cast<const char*>(data);
    while (bytes > 0) {
      const ssize_t sent = ::send(fd, at, bytes, os::kNoSignal | MSG_DONTWAIT);
      if (sent >= 0) {
        at += sent;
        bytes -= static_cast<size_t>(sent);
      } else if (errno == EAGAIN || errno == EINTR) {
        await(fd, POLLOUT, {peer});
      } else {
        throw lost(peer);
      }
    }
  }

  void read_all(int fd, void* data, size_t bytes, int peer) {
    auto* at = static_cast<char*>(data);
    while (bytes > 0) {
      const ssize_t got = ::recv(fd, at, bytes, MSG_DONTWAIT);
      if (got > 0) {
        at += got;
        bytes -= static_cast<size_t>(got);
      } else if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
        await(fd, POLLIN, {peer});
      } else {
        throw lost(peer);
      }
    }
  }

  Failure lost(int peer) const {
    return {FailureCode::PeerLost,
            rank_,
            {peer},
            "lost rank " + std::to_string(peer) +
                " while connecting (it ended, or refused this rank's proof that it belongs to the group)"};
  }

  Failure not_listening(int peer) const {
    return {FailureCode::PeerLost,
            rank_,
            {peer},
            "lost rank " + std::to_string(peer) + " while connecting (nothing listens at its address any more)"};
  }

  Fd connect_to(const PeerAddress& peer, Purpose purpose) {
    Address address = peer.local ? local_address(peer.unix_name) : tcp_address(peer.host, peer.port);
    Fd fd;
    int64_t refused_until_ns = 0;  // 0: the last attempt was not refused
    for (;;) {
      fd = os::open_socket(address.storage.ss_family);
      if (!fd) fail("socket");
      if (connect(fd.get(), address.get(), address.length) == 0) break;
      if (errno == EINPROGRESS) {
        await(fd.get(), POLLOUT, {peer.rank});
        int error = 0;
        socklen_t length = sizeof error;
        getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &length);
        if (error == 0) break;
        errno = error;
      }
      // A full backlog gives EAGAIN (unix). Other errors may be temporary too, so this rank tries again until the
      // deadline.
      const int64_t now = now_ns();
      if (!is_refusal(errno))
        refused_until_ns = 0;
      else if (refused_until_ns == 0)
        refused_until_ns = now + kRefusedNs;
      else if (now > refused_until_ns)
        throw not_listening(peer.rank);
      if (now > deadline_ns_) throw timeout({peer.rank});
      pollfd pause{wake_, POLLIN, 0};
      if (poll(&pause, 1, 5) > 0) await(wake_, POLLIN, {});  // throws that the group was closed
    }
    if (!peer.local) tune_tcp(fd.get());
    const Hello hello{kMagic, kVersion, purpose, {}, rank_, peer.rank, host_, peer.mine};
    write_all(fd.get(), &hello, sizeof hello, peer.rank);
    Hello answer;
    read_all(fd.get(), &answer, sizeof answer, peer.rank);
    if (answer.magic != kMagic || !equal_in_constant_time(answer.proof, peer.theirs)) {
      throw Failure(FailureCode::PeerLost, rank_, {peer.rank},
                    "rank " + std::to_string(peer.rank) + " could not prove that it belongs to the group");
    }
    connections_.hosts[peer.rank] = answer.host;
    return fd;
  }

  /// A connection whose hello has not arrived completely.
  struct Unauthenticated {
    Fd fd;
    int64_t deadline_ns;
    size_t got = 0;
    Hello hello;
    bool local;
  };

  std::vector<int> missing() const {
    std::vector<int> ranks;
    for (const auto& [rank, peer] : peers_) {
      const bool all =
          connections_.control[rank] && (peer.local || (connections_.data[rank] && connections_.p2p[rank]));
      if (rank > rank_ && !all) ranks.push_back(rank);
    }
    return ranks;
  }

  void accept_higher_ranks() {
    std::vector<Unauthenticated> unauthenticated;
    Probe probe;
    std::set<int> talking;  // connected ranks that have sent more than their hello, such as a goodbye
    for (std::vector<int> absent = missing(); !absent.empty(); absent = missing()) {
      std::vector<pollfd> fds{
          {wake_, POLLIN, 0}, {listener_.unix_descriptor(), POLLIN, 0}, {listener_.tcp_descriptor(), POLLIN, 0}};
      for (const auto& connection : unauthenticated) fds.push_back({connection.fd.get(), POLLIN, 0});
      // A rank that fails while it connects, for example because another one has ended, ends its connections.
      const size_t first_connected = fds.size();
      std::vector<int> connected;
      for (const auto& [rank, peer] : peers_) {
        if (!connections_.control[rank] || talking.contains(rank)) continue;
        connected.push_back(rank);
        fds.push_back({connections_.control[rank].get(), os::kPeerHasEnded, 0});
      }
      const int64_t left = deadline_ns_ - now_ns();
      if (left <= 0) throw timeout(absent);
      poll(fds.data(), fds.size(), static_cast<int>(std::min<int64_t>(left / kMillisecond + 1, 1000)));
      if (fds[0].revents != 0)
        throw Failure(FailureCode::Closed, rank_, {rank_}, "the group was closed while it was connecting");
      for (size_t i = 0; i < connected.size(); ++i) {
        if (fds[first_connected + i].revents == 0) continue;
        if (has_ended(connections_.control[connected[i]])) throw ended_before(connected[i], absent);
        talking.insert(connected[i]);  // what it has sent is read later
      }
      const int64_t now = now_ns();
      look_for(absent, probe, now);
      for (size_t i = unauthenticated.size(); i-- > 0;) {
        if ((fds[3 + i].revents != 0 && introduced(unauthenticated[i])) || now > unauthenticated[i].deadline_ns) {
          unauthenticated.erase(unauthenticated.begin() + static_cast<std::ptrdiff_t>(i));
        }
      }
      for (int i = 1; i <= 2; ++i) {
        if (fds[i].revents == 0) continue;
        Fd fd = os::accept_socket(fds[i].fd);
        if (!fd && is_lack(errno)) fail("accepting a connection of another rank");
        if (!fd) continue;
        if (unauthenticated.size() == kMaxUnauthenticated) unauthenticated.erase(unauthenticated.begin());
        unauthenticated.push_back({std::move(fd), now + kHelloNs, 0, {}, i == 1});
      }
    }
  }

  /// Finds out whether ranks that have not connected still listen.
  struct Probe {
    Fd fd;  // a connection that is being made to `rank`
    int rank = -1;
    int64_t next_ns = 0;
    std::map<int, int64_t> refused_ns;  // since when each rank refuses connections
  };

  /// Tries to connect to the ranks of `absent`, one at each call. Otherwise a rank that has ended after it has told its
  /// address would be missed only at the deadline, because it is the higher rank that connects. Throws if one has
  /// refused connections for kRefusedNs.
  void look_for(const std::vector<int>& absent, Probe& probe, int64_t now) {
    const int64_t next_ns = now + kProbeNs + static_cast<int64_t>(peers_.size()) * kProbePerRankNs;
    if (probe.next_ns == 0) probe.next_ns = next_ns;
    if (now < probe.next_ns) return;
    probe.next_ns = next_ns;
    int error = 0;
    if (probe.fd) {
      socklen_t length = sizeof error;
      getsockopt(probe.fd.get(), SOL_SOCKET, SO_ERROR, &error, &length);
      note(probe, error, now);
      probe.fd.reset();
    }
    const auto next = std::upper_bound(absent.begin(), absent.end(), probe.rank);
    probe.rank = next == absent.end() ? absent.front() : *next;
    const PeerAddress& peer = peers_[probe.rank];
    Address address = peer.local ? local_address(peer.unix_name) : tcp_address(peer.host, peer.port);
    Fd fd = os::open_socket(address.storage.ss_family);
    if (!fd) return;
    error = connect(fd.get(), address.get(), address.length) == 0 ? 0 : errno;
    if (error == EINPROGRESS)
      probe.fd = std::move(fd);
    else
      note(probe, error, now);
  }

  void note(Probe& probe, int error, int64_t now) {
    if (!is_refusal(error)) {
      probe.refused_ns.erase(probe.rank);
      return;
    }
    const auto [since, is_first] = probe.refused_ns.try_emplace(probe.rank, now);
    if (!is_first && now - since->second > kRefusedNs) throw not_listening(probe.rank);
  }

  /// Reads more of the connection's hello. Returns true when the connection is decided: accepted and moved to
  /// `connections_`, or rejected, in which case the caller closes it.
  bool introduced(Unauthenticated& connection) {
    auto* at = reinterpret_cast<char*>(&connection.hello) + connection.got;
    const ssize_t got = ::recv(connection.fd.get(), at, sizeof(Hello) - connection.got, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    if (got <= 0) return true;
    connection.got += static_cast<size_t>(got);
    if (connection.got < sizeof(Hello)) return false;
    const Hello& hello = connection.hello;
    const auto peer = peers_.find(hello.from);
    if (hello.magic != kMagic || hello.version != kVersion || hello.to != rank_ || hello.from <= rank_ ||
        peer == peers_.end() || !equal_in_constant_time(hello.proof, peer->second.theirs)) {
      return true;
    }
    if (connection.local != peer->second.local || (connection.local && hello.purpose != Purpose::Control)) return true;
    auto* sockets = hello.purpose == Purpose::Control ? &connections_.control
                    : hello.purpose == Purpose::Data  ? &connections_.data
                                                      : &connections_.p2p;
    if (hello.purpose > Purpose::PointToPoint || (*sockets)[hello.from]) return true;
    Fd& socket = (*sockets)[hello.from];
    if (!connection.local) tune_tcp(connection.fd.get());
    connections_.hosts[hello.from] = hello.host;
    const Hello answer{kMagic, kVersion, hello.purpose, {}, rank_, hello.from, host_, peer->second.mine};
    write_all(connection.fd.get(), &answer, sizeof answer, hello.from);
    socket = std::move(connection.fd);
    return true;
  }

  void share_segment() {
    auto& locals = connections_.local_ranks;
    locals.push_back(rank_);
    for (const auto& [rank, peer] : peers_) {
      if (peer.local) locals.push_back(rank);
    }
    std::ranges::sort(locals);
    const int count = static_cast<int>(locals.size());
    if (count == 1) return;
    const bool has_board = locals.size() == peers_.size() + 1 && count <= Board::kMaxRanks;
    if (locals.front() != rank_) {
      connections_.segment = Segment::attach(receive_descriptor(locals.front()), count);
      if (has_board) connections_.board = Board::attach(receive_descriptor(locals.front()), count);
    } else {
      connections_.segment = Segment::create(count);
      if (has_board) connections_.board = Board::create(count);
      for (const int rank : locals) {
        if (rank == rank_) continue;
        send_descriptor(rank, connections_.segment.descriptor());
        if (has_board) send_descriptor(rank, connections_.board.descriptor());
      }
    }
    if (has_board) share_arenas();
  }

  /// Exchanges the arenas of all ranks. If a rank has none, or cannot map that of another rank, no rank of the group
  /// uses arenas.
  void share_arenas() {
    connections_.arena = Arena::create();
    // A rank without an arena sends a message without a descriptor.
    for (const auto& [rank, peer] : peers_)
      send_descriptor(rank, connections_.arena ? connections_.arena->descriptor() : -1);
    const char has_all = attach_arenas() ? 1 : 0;
    for (const auto& [rank, peer] : peers_) write_all(connections_.control[rank].get(), &has_all, 1, rank);
    bool have_all = has_all != 0;
    for (const auto& [rank, peer] : peers_) {
      char theirs = 0;
      read_all(connections_.control[rank].get(), &theirs, 1, rank);
      have_all = have_all && theirs != 0;
    }
    if (have_all) return;
    connections_.arena.reset();
    connections_.arenas = PeerArenas(0);
  }

  /// Receives and maps the arenas of the other ranks. Returns false if one is missing or cannot be mapped, for example
  /// where the address space is limited.
  bool attach_arenas() {
    connections_.arenas = PeerArenas(static_cast<int>(connections_.local_ranks.size()));
    bool has_all = connections_.arena != nullptr;
    for (const auto& [rank, peer] : peers_) {
      const Fd file = receive_descriptor(rank);
      if (!file) has_all = false;
      if (!has_all) continue;
      try {
        connections_.arenas.attach(rank, file);
      } catch (const std::system_error&) {
        has_all = false;
      }
    }
    return has_all;
  }

  /// Sends a file descriptor over the control connection; −1 sends the message without a descriptor.
  void send_descriptor(int peer, int descriptor) {
    if (os::send_descriptor(connections_.control[peer].get(), descriptor)) return;
    const int error = errno;
    if (error == EPIPE || error == ECONNRESET) throw lost(peer);
    throw std::system_error(error, std::generic_category(), "passing shared memory to rank " + std::to_string(peer));
  }

  Fd receive_descriptor(int peer) {
    const int fd = connections_.control[peer].get();
    await(fd, POLLIN, {peer});
    std::optional<Fd> descriptor = os::receive_descriptor(fd);
    if (descriptor) return std::move(*descriptor);
    const int error = errno;
    if (!is_lack(error)) throw lost(peer);
    throw std::system_error(error, std::generic_category(), "receiving shared memory of rank " + std::to_string(peer));
  }

  const Listener& listener_;
  int rank_;
  int host_;  // the lowest rank on this host
  std::map<int, PeerAddress> peers_;
  int64_t deadline_ns_;
  int wake_;
  Connections connections_;
};

}  // namespace

Listener::Listener() : unix_name_(os::make_local_name()) {}

// Where the other constructor has succeeded, the destructor also runs if this one throws.
Listener::Listener(const std::string& host) : Listener() {
  unix_ = os::open_socket(AF_UNIX);
  Address address = local_address(unix_name_);
  if (!unix_ || bind(unix_.get(), address.get(), address.length) != 0 || listen(unix_.get(), kBacklog) != 0)
    fail("listening on a unix socket");

  address = tcp_address(host, 0);
  tcp_ = os::open_socket(address.storage.ss_family);
  if (!tcp_ || bind(tcp_.get(), address.get(), address.length) != 0 || listen(tcp_.get(), kBacklog) != 0) {
    throw std::system_error(errno, std::generic_category(), "listening on " + host);
  }
  if (getsockname(tcp_.get(), address.get(), &address.length) != 0) fail("getsockname");
  port_ = ntohs(address.storage.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(address.get())->sin6_port
                                                      : reinterpret_cast<sockaddr_in*>(address.get())->sin_port);
}

void Listener::close() {
  if (unix_) os::remove_local_name(unix_name_);
  unix_.reset();
  tcp_.reset();
}

Connections connect_all(const Listener& listener, int rank, const std::vector<PeerAddress>& peers, int64_t deadline_ns,
                        int wake) {
  return Meeting(listener, rank, peers, deadline_ns, wake).run();
}

}  // namespace ringwise::coll
