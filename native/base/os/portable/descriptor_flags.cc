#include "base/os/descriptor_flags.h"

#include <fcntl.h>

namespace ringwise::os {

bool set_descriptor_flags(int descriptor) noexcept {
  const int flags = fcntl(descriptor, F_GETFL);
  return flags >= 0 && fcntl(descriptor, F_SETFL, flags | O_NONBLOCK) == 0 &&
         fcntl(descriptor, F_SETFD, FD_CLOEXEC) == 0;
}

}  // namespace ringwise::os
