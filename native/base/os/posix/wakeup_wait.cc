#include <poll.h>

#include <cerrno>

#include "base/os/wakeup.h"

namespace ringwise::os {

void Wakeup::wait() noexcept {
  pollfd ready{descriptor(), POLLIN, 0};
  while (::poll(&ready, 1, -1) < 0 && errno == EINTR) {
  }
  silence();
}

}  // namespace ringwise::os
