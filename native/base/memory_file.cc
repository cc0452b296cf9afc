#include "base/memory_file.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <system_error>

namespace ringwise {

namespace {

[[noreturn]] void fail(const char* what, int error = errno) {
  throw std::system_error(error, std::generic_category(), what);
}

}  // namespace

Fd make_memory_file(const char* name, size_t bytes, bool sparse) {
  Fd file(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file) fail("memfd_create");
  const int error =
      sparse ? (ftruncate(file.get(), static_cast<off_t>(bytes)) == 0 ? 0 : errno) : reserve_pages(file, 0, bytes);
  if (error != 0) fail("reserving shared memory", error);
  if (fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0) fail("sealing shared memory");
  return file;
}

int reserve_pages(const Fd& file, size_t offset, size_t bytes) noexcept {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int error;
  do error = posix_fallocate(file.get(), static_cast<off_t>(offset), static_cast<off_t>(bytes));
  while (error == EINTR);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return error;
}

void check_memory_file(const Fd& file, size_t bytes) {
  struct stat status{};
  if (fstat(file.get(), &status) != 0) fail("fstat of shared memory");
  const int seals = fcntl(file.get(), F_GET_SEALS);
  if (static_cast<size_t>(status.st_size) != bytes || seals < 0 || !(seals & F_SEAL_SHRINK)) {
    fail("shared memory of an unexpected size", EINVAL);
  }
}

std::byte* map_memory_file(const Fd& file, size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file.get(), 0);
  if (memory == MAP_FAILED) fail("mapping shared memory");
  return static_cast<std::byte*>(memory);
}

void unmap(std::byte* memory, size_t bytes) noexcept { munmap(memory, bytes); }

}  // namespace ringwise
