// Connects the ranks of a group. Every rank listens and connects to all lower ranks; the caller exchanges the addresses
// through a store. Every pair gets a control connection: a unix socket inside a host, TCP between hosts. Pairs on
// different hosts also get one connection for the data of collectives and one for sends and receives. The lowest rank
// of a host creates the shared memory of that host and passes it to the others. If all ranks are on one host, every
// rank also passes its arena to the others.
//
// Before any other data, both ranks of a connection authenticate with 32 bytes that the caller has provided: hashes
// with the job secret (backends/host.ts), or random tokens (capi/card.h).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/fd.h"
#include "coll/shm/arena.h"
#include "coll/shm/board.h"
#include "coll/shm/segment.h"

namespace ringwise::coll {

using Proof = std::array<uint8_t, 32>;

struct PeerAddress {
  int rank = -1;
  bool local = false;     // on this host, reachable by unix socket and shared memory
  std::string unix_name;  // see os::make_local_name()
  std::string host;       // numeric IP address
  uint16_t port = 0;
  Proof mine{};    // what this rank sends to prove itself to the peer
  Proof theirs{};  // what the peer must send
};

class Listener {
 public:
  /// Listens on a unix socket with a random name and on a free TCP port of `host` (a numeric address). Throws
  /// std::system_error.
  explicit Listener(const std::string& host);
  ~Listener() { close(); }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  const std::string& unix_name() const { return unix_name_; }
  uint16_t port() const { return port_; }
  int unix_descriptor() const { return unix_.get(); }
  int tcp_descriptor() const { return tcp_.get(); }

  /// Stops listening; the kernel refuses connections from then on. unix_name() and port() stay valid.
  void close();

 private:
  Listener();

  std::string unix_name_;
  uint16_t port_ = 0;
  Fd unix_;
  Fd tcp_;
};

/// The sockets and shared memory of a connected rank. The vectors are indexed by rank of the group. Entries of this
/// rank are empty, and so are `data` and `p2p` of ranks on this host.
struct Connections {
  std::vector<Fd> control;
  std::vector<Fd> data;
  std::vector<Fd> p2p;
  std::vector<int> local_ranks;  // ascending, this rank included
  std::vector<int> hosts;        // the lowest rank on the host of every rank
  Segment segment;               // empty if this rank is alone on its host
  Board board;                   // like the arenas, empty unless all ranks are on one host, and not too many for it
  std::shared_ptr<Arena> arena;  // this rank's; also null if a rank may not map that much address space
  PeerArenas arenas{0};
};

/// Connects `rank` with all `peers`; blocks. Throws Failure at the deadline, which names the missing ranks, and when
/// `wake` becomes readable.
Connections connect_all(const Listener& listener, int rank, const std::vector<PeerAddress>& peers, int64_t deadline_ns,
                        int wake);

}  // namespace ringwise::coll
