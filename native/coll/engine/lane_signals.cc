#include "coll/engine/lane_signals.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <system_error>

namespace ringwise::coll {

LaneSignals::LaneSignals() : wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!wake) throw std::system_error(errno, std::generic_category(), "eventfd");
}

void LaneSignals::ring() {
  const uint64_t one = 1;
  if (::write(wake.get(), &one, sizeof one) < 0) { /* full means that a wake-up is already on its way */
  }
}

void LaneSignals::silence() {
  uint64_t count;
  (void)!::read(wake.get(), &count, sizeof count);  // nothing to read is fine
}

}  // namespace ringwise::coll
