#include "base/os/random.h"

// On macOS, the second one needs what the first one includes.
#include <unistd.h>

#include <sys/random.h>

#include <cerrno>
#include <system_error>

namespace ringwise::os {

void random_bytes(void* to, size_t bytes) {
  if (getentropy(to, bytes) != 0) throw std::system_error(errno, std::generic_category(), "getentropy");
}

std::string random_hex(size_t bytes) {
  unsigned char random[256];
  random_bytes(random, bytes);
  std::string text;
  for (size_t i = 0; i < bytes; ++i) {
    text += "0123456789abcdef"[random[i] >> 4];
    text += "0123456789abcdef"[random[i] & 15];
  }
  return text;
}

}  // namespace ringwise::os
