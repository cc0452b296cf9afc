// Abstract names, which vanish with their socket.
#include <sys/un.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "base/os/local_socket.h"
#include "base/os/random.h"

namespace ringwise::os {

std::string make_local_name() { return "ringwise-" + random_hex(16); }

socklen_t local_address(const std::string& name, sockaddr_storage& address) noexcept {
  auto* un = reinterpret_cast<sockaddr_un*>(&address);
  un->sun_family = AF_UNIX;
  const size_t length = std::min(name.size(), sizeof(un->sun_path) - 1);
  std::memcpy(un->sun_path + 1, name.data(), length);  // abstract: the first byte stays zero
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
}

void remove_local_name(const std::string&) noexcept {}

}  // namespace ringwise::os
