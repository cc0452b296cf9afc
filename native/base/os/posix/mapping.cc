#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "base/os/memory_file.h"

namespace ringwise::os {

std::byte* map_memory_file(const Fd& file, size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file.get(), 0);
  if (memory == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mapping shared memory");
  return static_cast<std::byte*>(memory);
}

void unmap(std::byte* memory, size_t bytes) noexcept { munmap(memory, bytes); }

size_t memory_of_machine() {
  return static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace ringwise::os
