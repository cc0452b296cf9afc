#include "base/os/host_id.h"

#include <unistd.h>
#include <uuid/uuid.h>

#include <cerrno>
#include <ctime>
#include <system_error>

namespace ringwise::os {

/// It identifies the hardware; macOS has no network namespaces.
std::string host_id() {
  uuid_t id;
  const timespec limit{5, 0};
  if (gethostuuid(id, &limit) != 0) throw std::system_error(errno, std::generic_category(), "gethostuuid");
  uuid_string_t text;
  uuid_unparse_lower(id, text);
  return text;
}

}  // namespace ringwise::os
