// What a signal handler finds out about a fault. Async-signal-safe.
#pragma once

#include <signal.h>

namespace ringwise::os {

/// Tells whether the processor or the kernel raised the signal for a fault, rather than a process that sent it.
bool is_fault(const siginfo_t& info) noexcept;

/// Returns where the thread was when the signal arrived; null if it is not known. `context` is the third argument of
/// the signal handler.
void* program_counter(const void* context) noexcept;

}  // namespace ringwise::os
