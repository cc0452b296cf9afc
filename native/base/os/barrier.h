// A memory barrier on the threads of other processes, which lets them do without barriers of their own.
#pragma once

namespace ringwise::os {

/// Makes barrier_everywhere() of any process reach the threads of this one. Returns false where the system has no such
/// barrier.
bool join_barriers() noexcept;

/// Executes a full memory barrier on the calling thread and on every running thread of all processes that have called
/// join_barriers(). So the caller sees afterwards what such a thread wrote before the barrier, and such a thread sees
/// after the barrier what the caller wrote before the call. Takes microseconds.
void barrier_everywhere() noexcept;

}  // namespace ringwise::os
