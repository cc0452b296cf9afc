// Names in the file system. They are paths in /tmp, because a path may have about 100 characters, and the folder of
// TMPDIR alone can be longer.
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "base/os/local_socket.h"
#include "base/os/random.h"

namespace ringwise::os {

std::string make_local_name() { return "/tmp/ringwise-" + random_hex(16); }

socklen_t local_address(const std::string& name, sockaddr_storage& address) noexcept {
  auto* un = reinterpret_cast<sockaddr_un*>(&address);
  un->sun_family = AF_UNIX;
  const size_t length = std::min(name.size(), sizeof(un->sun_path) - 1);  // a zero follows
  std::memcpy(un->sun_path, name.data(), length);
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + length + 1);
}

void remove_local_name(const std::string& name) noexcept { unlink(name.c_str()); }

}  // namespace ringwise::os
