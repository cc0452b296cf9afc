// Crash reports: when a signal is about to end this process, writes a line of JSON, the lines of the witness, and the
// native stack.
//
// The handler that was installed before runs first: Node's handler turns faults of WebAssembly into exceptions. Ours
// reports only when that one has given up, and does not change which signal ends the process. Apart from that handler,
// all functions that it calls are async-signal-safe, except the unwinder, which runs last and gets two seconds.
#pragma once

namespace ringwise {

/// Writes more about the crash to `fd`, as lines. Must be async-signal-safe.
using CrashWitness = void (*)(int fd);

/// Starts to report crashes (SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT) on `fd`, which must stay open. Call it on the
/// thread that runs the program: that thread gets an alternate signal stack, so that an overflow of its stack can be
/// reported. A signal that is ignored now stays ignored. Later calls do nothing.
void report_crashes_to(int fd, CrashWitness witness);

}  // namespace ringwise
