// Runs one operation of many virtual ranks over a simulated network and a virtual clock. The plans are those of a real
// group; only data is left out (check.h moves that). Every message must find a receiver that expects it next from its
// sender, with the same number of bytes.
#pragma once

#include <cstdint>

#include "sim/network.h"
#include "sim/trace.h"

namespace ringwise::sim {

struct Outcome {
  Time time = 0;  // until the last rank has finished; all begin at 0
  uint64_t messages = 0;
  Network::Traffic between_hosts;
  Network::Traffic inside_hosts;
};

/// `op` as all ranks call it. Throws std::logic_error when a plan is wrong: ranks wait for each other, or messages do
/// not fit.
Outcome simulate(const coll::Op& op, const coll::Algorithm& algorithm, const coll::Hosts& hosts,
                 const NetworkCosts& costs, bool handshakes);

}  // namespace ringwise::sim
