#include "base/os/memory_file.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>
#include <system_error>

namespace ringwise::os {

namespace {

[[noreturn]] void fail(const char* what, int error = errno) {
  throw std::system_error(error, std::generic_category(), what);
}

#ifndef MADV_POPULATE_WRITE
constexpr int MADV_POPULATE_WRITE = 23;  // since Linux 5.14
#endif

/// Lets signals to this thread wait.
class SignalsHeld {
 public:
  SignalsHeld() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsHeld() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsHeld(const SignalsHeld&) = delete;
  SignalsHeld& operator=(const SignalsHeld&) = delete;

 private:
  sigset_t before_;
};

/// Whether shared memory has huge pages in mappings that ask for them, and small ones elsewhere.
bool mapping_decides_page_size() {
  static const bool decides = [] {
    std::ifstream file("/sys/kernel/mm/transparent_hugepage/shmem_enabled");
    std::string modes;
    return std::getline(file, modes) && modes.find("[advise]") != std::string::npos;
  }();
  return decides;
}

/// Maps the pages of a range now. Returns an errno, or 0.
int map_pages(std::byte* memory, size_t bytes) noexcept {
  const SignalsHeld held;
  return madvise(memory, bytes, MADV_POPULATE_WRITE) == 0 ? 0 : errno;
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

/// Signals to this thread wait meanwhile: for each, an older kernel (such as 6.1, but not 6.18) drops what it has
/// reserved so far, and those of a profiler may come too often for a second attempt.
int reserve_pages(const Fd& file, size_t offset, size_t bytes) noexcept {
  const SignalsHeld held;
  int error;
  do error = posix_fallocate(file.get(), static_cast<off_t>(offset), static_cast<off_t>(bytes));
  while (error == EINTR);
  return error;
}

int reserve_mapped_pages(const Fd& file, std::byte* memory, size_t offset, size_t bytes) noexcept {
  // The file does not know what the mapping asks for: pages that are reserved through it are small.
  if (mapping_decides_page_size() && map_pages(memory + offset, bytes) == 0) return 0;
  const int error = reserve_pages(file, offset, bytes);
  if (error == 0) map_pages(memory + offset, bytes);  // older kernels cannot; then each page has its fault
  return error;
}

void advise_huge_pages(std::byte* memory, size_t bytes) noexcept { madvise(memory, bytes, MADV_HUGEPAGE); }

void clear_pages(const Fd& file, std::byte*, size_t offset, size_t bytes) noexcept {
  // A punched hole reads as zeros.
  fallocate(file.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
            static_cast<off_t>(bytes));
}

int make_private(std::byte* memory, size_t bytes) noexcept {
  // A mapping that failed in place of the old one could leave a hole, so the new pages come first.
  void* const copy = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (copy == MAP_FAILED) return errno;
  std::memcpy(copy, memory, bytes);
  if (mremap(copy, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, memory) != MAP_FAILED) return 0;
  const int error = errno;
  munmap(copy, bytes);
  return error;
}

void drop_private(std::byte* memory, size_t bytes) noexcept { madvise(memory, bytes, MADV_DONTNEED); }

void check_memory_file(const Fd& file, size_t bytes) {
  struct stat status{};
  if (fstat(file.get(), &status) != 0) fail("fstat of shared memory");
  const int seals = fcntl(file.get(), F_GET_SEALS);
  if (static_cast<size_t>(status.st_size) != bytes || seals < 0 || !(seals & F_SEAL_SHRINK)) {
    fail("shared memory of an unexpected size", EINVAL);
  }
}

}  // namespace ringwise::os
