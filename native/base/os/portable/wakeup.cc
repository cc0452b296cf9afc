// Wake-ups by a pipe. Each ring() leaves a byte in it, and silence() takes all of them.
#include "base/os/wakeup.h"

#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "base/os/descriptor_flags.h"

namespace ringwise::os {

Wakeup::Wakeup() {
  int ends[2];
  if (::pipe(ends) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
  reader_ = Fd(ends[0]);
  writer_ = Fd(ends[1]);
  if (!set_descriptor_flags(ends[0]) || !set_descriptor_flags(ends[1]))
    throw std::system_error(errno, std::generic_category(), "setting the flags of a pipe");
}

void Wakeup::ring() noexcept {
  const char one = 1;
  if (::write(writer_.get(), &one, 1) < 0) { /* full means that a wake-up is already on its way */
  }
}

void Wakeup::silence() noexcept {
  char bytes[4096];
  while (::read(reader_.get(), bytes, sizeof bytes) == static_cast<ssize_t>(sizeof bytes)) {
  }
}

}  // namespace ringwise::os
