// Anonymous shared memory: a file without a name. Processes pass its descriptor; it is freed when the last one closes
// it.
#pragma once

#include <cstddef>

#include "base/fd.h"

namespace ringwise {

/// Makes a zeroed memory file that is sealed against resizing. Reserves its pages unless `sparse`, so that a lack of
/// memory fails here and not as a bus error later. Throws std::system_error, like the functions below.
Fd make_memory_file(const char* name, size_t bytes, bool sparse = false);

/// Throws unless `file` is a memory file of `bytes` bytes that is sealed against shrinking.
void check_memory_file(const Fd& file, size_t bytes);

/// Maps the whole file, shared, for reading and writing.
std::byte* map_memory_file(const Fd& file, size_t bytes);

void unmap(std::byte* memory, size_t bytes) noexcept;

}  // namespace ringwise
