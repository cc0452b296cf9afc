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

}  // namespace ringwise::sim
