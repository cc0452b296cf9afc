#include "base/crash_words.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <ctime>
#include <iterator>

#include "base/os/fault.h"
#include "base/os/thread.h"
#include "base/text_line.h"
#include "base/time/clock.h"

#if __has_include(<execinfo.h>)
#include <execinfo.h>
#define RINGWISE_HAS_BACKTRACE 1
#endif

namespace ringwise {

namespace {

struct Crash {
  int signal;
  const char* name;
  struct sigaction before;
};
Crash crashes[] = {{SIGSEGV, "SIGSEGV", {}},
                   {SIGBUS, "SIGBUS", {}},
                   {SIGILL, "SIGILL", {}},
                   {SIGFPE, "SIGFPE", {}},
                   {SIGABRT, "SIGABRT", {}}};

constexpr unsigned kUnwindSeconds = 2;     // most time for the unwinder
constexpr size_t kStackBytes = 256 << 10;  // the unwinder needs some KiB, the kernel's signal frame up to 12 KiB

std::atomic_flag is_installed;
int words_fd = -1;
CrashWitness crash_witness = nullptr;
std::atomic<uint64_t> reporter{0};  // id of the thread that reports its crash; 0 while there is none
std::atomic<int> ending{0};         // the signal of that crash

bool is_default(const struct sigaction& action) {
  return (action.sa_flags & SA_SIGINFO) == 0 && action.sa_handler == SIG_DFL;
}

void set_default(int signal) {
  struct sigaction none{};
  none.sa_handler = SIG_DFL;
  sigaction(signal, &none, nullptr);
}

/// Calls the handler that was installed before, if any. Returns true if it has handled the signal, so that the program
/// goes on. Node's handler gives up by restoring the default action and raising the signal again, which stays pending
/// until our handler has returned.
bool is_taken_care_of(const Crash& crash, siginfo_t* info, void* context) {
  if (is_default(crash.before)) return false;
  if ((crash.before.sa_flags & SA_SIGINFO) != 0)
    crash.before.sa_sigaction(crash.signal, info, context);
  else
    crash.before.sa_handler(crash.signal);
  struct sigaction now{};
  sigaction(crash.signal, nullptr, &now);
  return !is_default(now);
}

void write_words(const Crash& crash, const siginfo_t& info) {
  char thread[16] = "";
  os::read_thread_name(thread);
  for (char& c : thread) {
    if (c == '"' || c == '\\' || (c != 0 && static_cast<unsigned char>(c) < 0x20)) c = '?';
  }
  TextLine line;
  line << "{\"crash\":\"" << crash.name << "\",\"timeNs\":\"" << static_cast<uint64_t>(now_ns()) << "\",\"thread\":\""
       << thread << "\",\"tid\":" << os::this_thread_id();
  if (os::is_fault(info))
    (line << ",\"address\":\"").hex(reinterpret_cast<uint64_t>(info.si_addr)) << "\"";
  else if (info.si_code == SI_USER && info.si_pid != getpid())
    line << ",\"sender\":" << static_cast<uint64_t>(info.si_pid);
  (line << "}").write_to(words_fd);
}

/// Ends the process when the unwinder takes too long: it may need a lock that a crashed thread holds, or loop over a
/// broken stack.
void on_hang(int) {
  set_default(ending);
  kill(getpid(), ending);
}

void write_stack(const void* context) {
#ifdef RINGWISE_HAS_BACKTRACE
  struct sigaction hang{};
  hang.sa_handler = on_hang;
  sigaction(SIGALRM, &hang, nullptr);
  sigset_t alarms;
  sigemptyset(&alarms);
  sigaddset(&alarms, SIGALRM);
  pthread_sigmask(SIG_UNBLOCK, &alarms, nullptr);  // all threads of the program may block it
  alarm(kUnwindSeconds);
  void* frames[64];
  const int count = backtrace(frames, std::size(frames));
  int first = 0;  // the first frames are the handler and its trampoline
  while (first < count && frames[first] != os::program_counter(context)) ++first;
  if (first == count) first = 0;
  backtrace_symbols_fd(frames + first, count - first, words_fd);
  alarm(0);
#endif
}

void on_crash(int signal, siginfo_t* info, void* context) {
  const int error = errno;
  const Crash* crash = crashes;
  while (crash->signal != signal) ++crash;
  if (is_taken_care_of(*crash, info, context)) {
    errno = error;
    return;
  }
  uint64_t first = 0;  // the thread that reports already; 0 if there is none
  if (reporter.compare_exchange_strong(first, os::this_thread_id())) {
    ending = signal;
    write_words(*crash, *info);
    if (crash_witness != nullptr) crash_witness(words_fd);
    write_stack(context);
  } else if (first != os::this_thread_id()) {
    // The thread that crashed first ends the process. Other signals interrupt the sleep.
    timespec left{2 * kUnwindSeconds, 0};
    while (nanosleep(&left, &left) != 0 && errno == EINTR) {
    }
  }
  set_default(signal);
  // A fault happens again after the return. A signal that was sent must be raised again; it is blocked until the
  // return.
  if (!os::is_fault(*info)) raise(signal);
  errno = error;
}

void give_signal_stack() {
  stack_t stack{};
  if (sigaltstack(nullptr, &stack) != 0 || (stack.ss_flags & SS_DISABLE) == 0) return;
  void* memory = mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return;
  stack = {};
  stack.ss_sp = memory;
  stack.ss_size = kStackBytes;
  sigaltstack(&stack, nullptr);
}

}  // namespace

void report_crashes_to(int fd, CrashWitness witness) {
  if (is_installed.test_and_set()) return;
  words_fd = fd;
  crash_witness = witness;
#ifdef RINGWISE_HAS_BACKTRACE
  void* frame;
  backtrace(&frame, 1);  // loads the unwinder now, because a signal handler must not
#endif
  give_signal_stack();
  struct sigaction mine{};
  mine.sa_sigaction = on_crash;
  mine.sa_flags = SA_SIGINFO | SA_ONSTACK;
  for (const Crash& crash : crashes) sigaddset(&mine.sa_mask, crash.signal);
  for (Crash& crash : crashes) {
    sigaction(crash.signal, nullptr, &crash.before);
    const bool is_ignored = (crash.before.sa_flags & SA_SIGINFO) == 0 && crash.before.sa_handler == SIG_IGN;
    if (!is_ignored) sigaction(crash.signal, &mine, nullptr);
  }
}

}  // namespace ringwise
