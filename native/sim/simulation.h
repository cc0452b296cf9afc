// Runs one operation of many virtual ranks over a simulated network with a virtual clock. The plans are those of a real
// group, but no data is moved (check.h does that). Checks that the receiver of every message expects it next from that
// sender, with the same number of bytes.
#pragma once

#include <cstdint>

#include "sim/network.h"
#include "sim/trace.h"

namespace ringwise::sim {

struct Outcome {
  Time time = 0;  // when the last rank has finished; all begin at 0
  uint64_t messages = 0;
  Network::Traffic between_hosts;
  Network::Traffic inside_hosts;
};

/// Simulates `op`, which all ranks call at time 0. With `handshakes`, ranks first exchange signatures, as real groups
/// do. Throws std::logic_error if a plan is wrong: ranks wait for each other, or messages do not match.
Outcome simulate(const coll::Op& op, const coll::Algorithm& algorithm, const coll::Hosts& hosts,
                 const NetworkCosts& costs, bool handshakes);

/// How many messages the ranks exchange, and between how many ordered pairs of ranks, estimated as if all ranks sent as
/// many as rank n/2.
struct Traffic {
  double messages;
  double pairs;
};

/// A direct exchange among many ranks has a few messages on each of very many connections, so no real network would run
/// it: the limit on pairs of ranks that exchange messages is the limit on messages, divided by this.
inline constexpr double kPairLimitDivisor = 10;

/// Estimates the traffic without simulating it, in the time that it takes to make the plan of one rank.
Traffic expected_traffic(const coll::Op& op, const coll::Algorithm& algorithm, const coll::Hosts& hosts,
                         bool handshakes);

}  // namespace ringwise::sim
