// Random bytes of the operating system.
#pragma once

#include <cstddef>
#include <string>

namespace ringwise::os {

/// Fills `bytes` bytes (at most 256) with random ones that no other process can guess. Throws std::system_error.
void random_bytes(void* to, size_t bytes);

/// Returns as many random bytes (at most 256) as hexadecimal digits, two for each. Throws std::system_error.
std::string random_hex(size_t bytes);

}  // namespace ringwise::os
