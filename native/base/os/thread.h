// Names and ids of threads.
#pragma once

#include <cstdint>

namespace ringwise::os {

/// Gives this thread a name, of at most 15 bytes, that debuggers show.
void name_this_thread(const char* name) noexcept;

/// Sets `name` to the name of this thread, perhaps cut. Async-signal-safe.
void read_thread_name(char (&name)[16]) noexcept;

/// Returns the number by which debuggers know this thread. Async-signal-safe.
uint64_t this_thread_id() noexcept;

}  // namespace ringwise::os
