#include "base/os/cores.h"

#include <unistd.h>

#include <algorithm>

namespace ringwise::os {

int usable_cores() noexcept { return static_cast<int>(std::max(0L, sysconf(_SC_NPROCESSORS_ONLN))); }

int current_core() noexcept { return -1; }

bool leave_core(int) noexcept { return false; }

}  // namespace ringwise::os
