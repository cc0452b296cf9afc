// Reads the memory of other processes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ringwise::os {

/// Copies memory of the process with this id. Returns 0 or an errno: ESRCH if the process has ended, EPERM if it may
/// not be read (see ptrace(2), "Ptrace access mode checking"), ENOSYS where the system has no such call.
int read_process_memory(int process, uint64_t address, void* to, size_t bytes) noexcept;

}  // namespace ringwise::os
