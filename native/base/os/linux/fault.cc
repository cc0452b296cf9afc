#include "base/os/fault.h"

#include <ucontext.h>

namespace ringwise::os {

bool is_fault(const siginfo_t& info) noexcept { return info.si_code > 0; }

void* program_counter(const void* context) noexcept {
  const mcontext_t& machine = static_cast<const ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  return reinterpret_cast<void*>(machine.gregs[REG_RIP]);
#elif defined(__aarch64__)
  return reinterpret_cast<void*>(machine.pc);
#else
  return nullptr;
#endif
}

}  // namespace ringwise::os
