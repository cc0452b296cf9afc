#include "base/os/host_id.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <fstream>
#include <system_error>

namespace ringwise::os {

/// It identifies the boot of the machine and the network namespace. Without /proc, it is the host name instead.
std::string host_id() {
  std::string boot;
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  // The host name instead would make this rank one of another host for the ranks of this one.
  if (!file && (errno == EMFILE || errno == ENFILE))
    throw std::system_error(errno, std::generic_category(), "reading which host this is");
  file >> boot;
  struct stat space{};
  if (!boot.empty() && ::stat("/proc/self/ns/net", &space) == 0) return boot + "/" + std::to_string(space.st_ino);
  char name[HOST_NAME_MAX + 1] = {};
  if (::gethostname(name, sizeof name - 1) != 0) throw std::system_error(errno, std::generic_category(), "gethostname");
  return name;
}

}  // namespace ringwise::os
