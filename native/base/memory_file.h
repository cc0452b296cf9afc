// Anonymous shared memory: a file without a name. Processes pass its descriptor; the memory is freed when no descriptor
// and no mapping of it is left.
#pragma once

#include <cstddef>

#include "base/fd.h"

namespace ringwise {

/// Makes a zeroed memory file that is sealed against resizing. Reserves its pages unless `sparse`, so that a lack of
/// memory fails here and not as a bus error later. Throws std::system_error, like the functions below.
Fd make_memory_file(const char* name, size_t bytes, bool sparse = false);

/// Reserves the pages of a range of a memory file. Signals to this thread wait meanwhile: for each, an older kernel
/// (such as Linux 6.1, but not 6.18) drops what it has reserved so far, and those of a profiler may come too often for
/// a second attempt. Returns an errno, or 0.
int reserve_pages(const Fd& file, size_t offset, size_t bytes) noexcept;

/// Throws unless `file` is a memory file of `bytes` bytes that is sealed against shrinking.
void check_memory_file(const Fd& file, size_t bytes);

/// Maps the whole file, shared, for reading and writing.
std::byte* map_memory_file(const Fd& file, size_t bytes);

void unmap(std::byte* memory, size_t bytes) noexcept;

}  // namespace ringwise
