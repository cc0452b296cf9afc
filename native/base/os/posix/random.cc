#include "base/os/random.h"

#include <sys/random.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace ringwise::os {

void random_bytes(void* to, size_t bytes) {
  if (getentropy(to, bytes) != 0) throw std::system_error(errno, std::generic_category(), "getentropy");
}

}  // namespace ringwise::os
