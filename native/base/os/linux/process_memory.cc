#include "base/os/process_memory.h"

#include <sys/uio.h>

#include <cerrno>

namespace ringwise::os {

int read_process_memory(int process, uint64_t address, void* to, size_t bytes) noexcept {
  size_t done = 0;
  while (done < bytes) {
    const iovec here{static_cast<char*>(to) + done, bytes - done};
    const iovec there{reinterpret_cast<void*>(address + done), bytes - done};
    const ssize_t got = process_vm_readv(process, &here, 1, &there, 1, 0);
    if (got <= 0) return got < 0 ? errno : EFAULT;
    done += static_cast<size_t>(got);
  }
  return 0;
}

}  // namespace ringwise::os
