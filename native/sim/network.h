// The simulated network. Every host has one port to the network, which its ranks share, and every rank one port to the
// other ranks of its host; both ports carry both directions at once. A message occupies its sender's port and its
// receiver's port for overhead + bytes × cost of a byte, and its beginning needs the latency from one port to the
// other. Ports serve messages in the order of arrival. Hosts may be grouped into pods, with one more port between a pod
// and the rest, so that the network between pods is narrower than the hosts' ports together. (The model is LogGP:
// Alexandrov, Ionescu, Schauser, Scheiman 1995, with the gap folded into the overhead.)
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "coll/plan/topology.h"

namespace ringwise::sim {

/// Nanoseconds.
using Time = double;

struct Cost {
  Time latency = 0;
  Time overhead = 0;    // per message
  double per_byte = 0;  // nanoseconds

  Time occupies(size_t bytes) const { return overhead + per_byte * static_cast<double>(bytes); }
};

struct NetworkCosts {
  Cost between_hosts;
  Cost inside_host;
  int pod_hosts = 0;        // hosts per pod; 0 for no pods
  double pod_per_byte = 0;  // nanoseconds per byte of the port between a pod and the rest
};

/// One direction of a port.
struct Port {
  Time free = 0;
  size_t bytes = 0;

  /// Passes a message that arrives at `at`; returns when its beginning passes the port.
  Time pass(Time at, Time duration, size_t size) {
    const Time begins = at > free ? at : free;
    free = begins + duration;
    bytes += size;
    return begins;
  }
};

/// The ports on the way of a message: its sender's, those of the two pods if it leaves one, its receiver's.
enum class Hop : uint8_t { Out, PodOut, PodIn, In };

struct Message {
  int from;
  int to;
  size_t bytes;
};

class Network {
 public:
  Network(const coll::Hosts& hosts, const NetworkCosts& costs);

  struct Passage {
    Time end;  // the whole message has passed: its sender may go on, or its receiver has it
    Hop next;  // next port; not valid after Hop::In
    Time at;   // when its beginning arrives at the next port
  };
  /// Passes a message through one port, at which its beginning arrives at `at`. Calls for each port must be in order of
  /// `at`.
  Passage pass(Hop hop, const Message& message, Time at);

  /// Returns whether no other rank uses the port of `rank`.
  bool owns_port(int rank) const { return hosts_.on_host_of(rank).size == 1; }

  struct Traffic {
    size_t max = 0;    // bytes in one direction of the busiest port
    size_t total = 0;  // bytes of all messages
  };
  Traffic between_hosts() const { return traffic(host_ports_); }
  Traffic inside_hosts() const { return traffic(rank_ports_); }

 private:
  struct Ports {
    explicit Ports(int count) : out(count), in(count) {}
    std::vector<Port> out;
    std::vector<Port> in;
  };
  int pod_of(int host) const { return host / costs_.pod_hosts; }
  static Traffic traffic(const Ports& ports);

  const coll::Hosts& hosts_;
  NetworkCosts costs_;
  Ports host_ports_;
  Ports rank_ports_;
  Ports pod_ports_;
};

}  // namespace ringwise::sim
