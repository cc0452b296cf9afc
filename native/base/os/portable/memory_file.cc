// Memory files by POSIX: shared memory with a random name, which is removed at once. POSIX neither reserves pages nor
// forbids that the size changes; macOS lets it be set only once.
#include "base/os/memory_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <system_error>

#include "base/os/random.h"

namespace ringwise::os {

namespace {

[[noreturn]] void fail(const char* what, int error = errno) {
  throw std::system_error(error, std::generic_category(), what);
}

/// macOS rounds the size of shared memory up to pages.
size_t whole_pages(size_t bytes) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return (bytes + page - 1) / page * page;
}

}  // namespace

Fd make_memory_file(const char*, size_t bytes, bool) {
  Fd file;
  do {
    // macOS allows 31 characters.
    const std::string name = "/ringwise-" + random_hex(8);
    file = Fd(shm_open(name.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600));
    if (file) shm_unlink(name.c_str());
  } while (!file && errno == EEXIST);
  if (!file) fail("shm_open");
  if (fcntl(file.get(), F_SETFD, FD_CLOEXEC) != 0) fail("closing shared memory on exec");
  if (ftruncate(file.get(), static_cast<off_t>(whole_pages(bytes))) != 0) fail("sizing shared memory");
  return file;
}

int reserve_pages(const Fd&, size_t, size_t) noexcept { return 0; }

int reserve_mapped_pages(const Fd&, std::byte* memory, size_t offset, size_t bytes) noexcept {
  // macOS has no call for this: the first write to a page maps it.
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  volatile std::byte* const range = memory + offset;
  for (size_t at = 0; at < bytes; at += page) range[at] = std::byte{0};
  return 0;
}

void advise_huge_pages(std::byte*, size_t) noexcept {}

void clear_pages(const Fd&, std::byte* memory, size_t offset, size_t bytes) noexcept {
  std::memset(memory + offset, 0, bytes);
}

int make_private(std::byte* memory, size_t bytes) noexcept {
  const std::unique_ptr<std::byte[]> copy(new (std::nothrow) std::byte[bytes]);
  if (!copy) return ENOMEM;
  std::memcpy(copy.get(), memory, bytes);
  void* const pages = mmap(memory, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANON | MAP_FIXED, -1, 0);
  if (pages == MAP_FAILED) return errno;
  std::memcpy(memory, copy.get(), bytes);
  return 0;
}

void drop_private(std::byte* memory, size_t bytes) noexcept {
  mmap(memory, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANON | MAP_FIXED, -1, 0);
}

void check_memory_file(const Fd& file, size_t bytes) {
  struct stat status{};
  if (fstat(file.get(), &status) != 0) fail("fstat of shared memory");
  if (static_cast<size_t>(status.st_size) != whole_pages(bytes)) fail("shared memory of an unexpected size", EINVAL);
}

}  // namespace ringwise::os
