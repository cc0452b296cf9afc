// The processor's hint for a loop that spins.
#pragma once

namespace ringwise {

/// Tells the processor that the thread spins until another core writes.
inline void pause_cpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace ringwise
