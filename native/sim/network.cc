#include "sim/network.h"

#include <algorithm>

namespace ringwise::sim {

Network::Network(const coll::Hosts& hosts, const NetworkCosts& costs)
    : hosts_(hosts),
      costs_(costs),
      host_ports_(hosts.count()),
      rank_ports_(hosts.size()),
      pod_ports_(costs.pod_hosts > 0 ? (hosts.count() + costs.pod_hosts - 1) / costs.pod_hosts : 0) {}

Network::Passage Network::pass(Hop hop, const Message& message, Time at) {
  const int from = hosts_.host_of(message.from), to = hosts_.host_of(message.to);
  const bool inside = from == to;
  const Cost& cost = inside ? costs_.inside_host : costs_.between_hosts;
  const Time duration = cost.occupies(message.bytes);
  if (hop == Hop::Out) {
    const Time begins =
        (inside ? rank_ports_.out[message.from] : host_ports_.out[from]).pass(at, duration, message.bytes);
    if (costs_.pod_hosts > 0 && pod_of(from) != pod_of(to)) return {begins + duration, Hop::PodOut, begins};
    return {begins + duration, Hop::In, begins + cost.latency};
  }
  if (hop == Hop::In) {
    const Time begins = (inside ? rank_ports_.in[message.to] : host_ports_.in[to]).pass(at, duration, message.bytes);
    return {begins + duration, Hop::In, 0};
  }
  const Time crossing = costs_.pod_per_byte * static_cast<double>(message.bytes);
  Port& port = hop == Hop::PodOut ? pod_ports_.out[pod_of(from)] : pod_ports_.in[pod_of(to)];
  const Time begins = port.pass(at, crossing, message.bytes);
  if (hop == Hop::PodOut) return {begins + crossing, Hop::PodIn, begins};
  // The end of a message arrives only after it has crossed the pod's port, however fast the receiver's port is. The
  // latency counts once.
  return {begins + crossing, Hop::In, begins + std::max(crossing - duration, 0.0) + cost.latency};
}

Network::Traffic Network::traffic(const Ports& ports) {
  Traffic traffic;
  for (const Port& port : ports.out) {
    traffic.max = std::max(traffic.max, port.bytes);
    traffic.total += port.bytes;
  }
  for (const Port& port : ports.in) traffic.max = std::max(traffic.max, port.bytes);
  return traffic;
}

}  // namespace ringwise::sim
