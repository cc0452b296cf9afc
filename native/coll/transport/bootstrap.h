// How the ranks of a group find each other: every rank listens, tells its address to the others (by a store, which
// is the caller's business), and connects to all lower ranks. Every pair gets a control connection (a unix socket
// inside a host, TCP between hosts), pairs on different hosts also one for the data of collectives and one for sends
// and receives. The lowest rank of a host makes its shared memory and passes it on. When all are on one host, every
// rank passes its arena to the others.
//
// Whoever connects proves first that it knows the group's secrets: 32 bytes that both sides derived from the job
// secret and both ranks' nonces. Nothing else is parsed before that.
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
  std::string unix_name;  // abstract name, without the leading zero byte
  std::string host;       // numeric IP address
  uint16_t port = 0;
  Proof mine{};    // shown by this rank to the peer
  Proof theirs{};  // expected from the peer
};

class Listener {
 public:
  /// Listens on a unix socket with a random abstract name and on a free TCP port of `host` (a numeric address).
  /// Throws std::system_error.
  explicit Listener(const std::string& host);

  const std::string& unix_name() const { return unix_name_; }
  uint16_t port() const { return port_; }
  int unix_descriptor() const { return unix_.get(); }
  int tcp_descriptor() const { return tcp_.get(); }

  /// Ends listening; names and ports stay readable. From then on connections are refused by the kernel.
  void close() {
    unix_.reset();
    tcp_.reset();
  }

 private:
  std::string unix_name_;
  uint16_t port_ = 0;
  Fd unix_;
  Fd tcp_;
};

/// By rank of the group; entries of the own rank, and of ranks on this host except for `control`, are empty.
struct Connections {
  std::vector<Fd> control;
  std::vector<Fd> data;
  std::vector<Fd> p2p;
  std::vector<int> local_ranks;  // ascending, this rank included
  std::vector<int> hosts;        // the lowest rank on the host of every rank
  Segment segment;               // empty where this rank is alone on its host
  Board board;                   // empty unless all ranks are on one host; so are the arenas
  std::shared_ptr<Arena> arena;  // this rank's; null also where the address space is limited
  PeerArenas arenas{0};
};

/// Connects `rank` with all `peers`; blocks. Throws Failure at the deadline, naming who did not come, and when
/// `wake` becomes readable.
Connections connect_all(const Listener& listener, int rank, const std::vector<PeerAddress>& peers, int64_t deadline_ns,
                        int wake);

}  // namespace ringwise::coll
