#include "base/os/cores.h"

#include <sched.h>

namespace ringwise::os {

int usable_cores() noexcept {
  cpu_set_t cores;
  return sched_getaffinity(0, sizeof cores, &cores) == 0 ? CPU_COUNT(&cores) : 0;
}

int current_core() noexcept { return sched_getcpu(); }

bool leave_core(int core) noexcept {
  cpu_set_t all, others;
  if (sched_getaffinity(0, sizeof all, &all) != 0) return false;
  others = all;
  CPU_CLR(core, &others);
  if (CPU_COUNT(&others) == 0 || sched_setaffinity(0, sizeof others, &others) != 0) return false;
  sched_setaffinity(0, sizeof all, &all);
  return true;
}

}  // namespace ringwise::os
