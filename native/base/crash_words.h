// What this process says when a signal is about to end it: a line of JSON, what its witness adds, and the native stack.
//
// A handler that was there before is asked first: Node's turns faults of WebAssembly into exceptions. Ours speaks when
// that one has given up, and never changes which signal ends the process. What it calls is async-signal-safe but for
// the unwinder, which comes last and gets two seconds.
#pragma once

namespace ringwise {

/// Writes more about the crash to `fd`, as lines. Must be async-signal-safe.
using CrashWitness = void (*)(int fd);

/// From now on crashes (SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT) are told on `fd`, which stays open. To be called by
/// the thread that runs the program: it gets a stack of its own for the signal, to tell of an overflow of the other
/// one. Does nothing when called again.
void report_crashes_to(int fd, CrashWitness witness);

}  // namespace ringwise
