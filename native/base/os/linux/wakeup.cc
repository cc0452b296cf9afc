#include "base/os/wakeup.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <system_error>

namespace ringwise::os {

Wakeup::Wakeup() : reader_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!reader_) throw std::system_error(errno, std::generic_category(), "eventfd");
}

void Wakeup::ring() noexcept {
  const uint64_t one = 1;
  if (::write(reader_.get(), &one, sizeof one) < 0) { /* full means that a wake-up is already on its way */
  }
}

void Wakeup::silence() noexcept {
  uint64_t count;
  (void)!::read(reader_.get(), &count, sizeof count);  // nothing to read is fine
}

}  // namespace ringwise::os
