#include "base/os/fault.h"

#include <mach/machine/thread_status.h>
#include <sys/ucontext.h>

namespace ringwise::os {

// Faults have small codes. A signal that a process sent has 0 or SI_USER, which is large here.
bool is_fault(const siginfo_t& info) noexcept { return info.si_code > 0 && info.si_code < SI_USER; }

void* program_counter(const void* context) noexcept {
  const auto& thread = static_cast<const ucontext_t*>(context)->uc_mcontext->__ss;
#if defined(__x86_64__)
  return reinterpret_cast<void*>(thread.__rip);
#elif defined(__aarch64__)
  return reinterpret_cast<void*>(arm_thread_state64_get_pc(thread));
#else
  return nullptr;
#endif
}

}  // namespace ringwise::os
