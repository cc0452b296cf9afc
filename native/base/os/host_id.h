// Identifies the machine.
#pragma once

#include <string>

namespace ringwise::os {

/// Returns an id, of at most 67 bytes, that is equal for two processes exactly if they can connect through local
/// sockets and shared memory. Throws std::system_error.
std::string host_id();

}  // namespace ringwise::os
