// Anonymous shared memory: a file without a name that travels as a descriptor and goes with its last user.
#pragma once

#include <cstddef>

#include "base/fd.h"

namespace ringwise {

/// Zeroed, sealed against resizing. Its pages are reserved now, so that a host without memory says so here and not by a
/// bus error later; unless `sparse`. Throws std::system_error, like everything here.
Fd make_memory_file(const char* name, size_t bytes, bool sparse = false);

/// Throws unless `file` is one of `bytes` bytes that nobody can shrink.
void check_memory_file(const Fd& file, size_t bytes);

/// Maps all of it, shared, for reading and writing.
std::byte* map_memory_file(const Fd& file, size_t bytes);

void unmap(std::byte* memory, size_t bytes) noexcept;

}  // namespace ringwise
