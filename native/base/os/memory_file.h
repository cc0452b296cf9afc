// Anonymous shared memory: a file without a name. Processes pass its descriptor; the memory is freed when no descriptor
// and no mapping of it is left.
#pragma once

#include <cstddef>

#include "base/fd.h"

namespace ringwise::os {

/// Makes a zeroed memory file whose size does not change. Reserves its pages unless `sparse`, so that a lack of memory
/// fails here and not as a bus error later; where the system cannot reserve them, it fails later. Throws
/// std::system_error, like the functions below.
Fd make_memory_file(const char* name, size_t bytes, bool sparse = false);

/// Reserves the pages of a range of a memory file, where the system can do that. Returns an errno, or 0.
int reserve_pages(const Fd& file, size_t offset, size_t bytes) noexcept;

/// Does what reserve_pages() does for a range of a file that is mapped at `memory`, and maps the pages at once: a page
/// fault for each of them would cost more. They are huge pages where the range is large enough, advise_huge_pages() was
/// called and the system allows them. The range holds zeros, and no thread uses it meanwhile. Returns an errno, or 0.
int reserve_mapped_pages(const Fd& file, std::byte* memory, size_t offset, size_t bytes) noexcept;

/// Asks for huge pages in a mapping. Many Linux systems do not allow them for shared memory.
void advise_huge_pages(std::byte* memory, size_t bytes) noexcept;

/// Makes a range of a memory file, which is mapped at `memory`, read as zeros. Returns its pages to the system where
/// that is possible.
void clear_pages(const Fd& file, std::byte* memory, size_t offset, size_t bytes) noexcept;

/// Replaces whole pages of a mapping by private ones with the same contents, so that other processes that map the file
/// do not reach them. No thread of this process writes them meanwhile. Returns an errno, or 0. An error changes none.
int make_private(std::byte* memory, size_t bytes) noexcept;

/// Returns private pages of a mapping to the system. They read as zeros then.
void drop_private(std::byte* memory, size_t bytes) noexcept;

/// Throws unless `file` is a memory file of `bytes` bytes whose size does not shrink.
void check_memory_file(const Fd& file, size_t bytes);

/// Maps the whole file, shared, for reading and writing.
std::byte* map_memory_file(const Fd& file, size_t bytes);

void unmap(std::byte* memory, size_t bytes) noexcept;

/// Returns the size of the machine's memory in bytes.
size_t memory_of_machine();

}  // namespace ringwise::os
