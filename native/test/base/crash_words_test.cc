// Tests crash reports: a child process crashes, and the test reads what the process wrote about it.
#include "base/crash_words.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>

#include "base/os/thread.h"
#include "coll/failure/last_calls.h"
#include "test/check.h"

using namespace ringwise;
using namespace ringwise::test;

// Turns off the signal handlers of the sanitizers, which would end the process before our handler reports. The
// sanitizers look these functions up by name.
#define RINGWISE_OPTIONS extern "C" __attribute__((visibility("default"))) const char*
RINGWISE_OPTIONS __asan_default_options() {
  return "handle_segv=0:handle_abort=0:handle_sigbus=0:use_sigaltstack=0:detect_leaks=0";
}
RINGWISE_OPTIONS __tsan_default_options() { return "handle_segv=0:handle_abort=0:handle_sigbus=0:use_sigaltstack=0"; }
RINGWISE_OPTIONS __ubsan_default_options() { return "handle_segv=0:handle_abort=0:handle_sigbus=0:use_sigaltstack=0"; }

namespace {

struct Ended {
  std::string words;
  int signal = 0;  // 0: no signal ended the process
};

/// Runs `body` in a child process that reports its crashes, and returns how the child ended. If `from_outside` is
/// given, calls it with the pid of the child once the child runs.
Ended run_child(CrashWitness witness, const std::function<void()>& body,
                const std::function<void(pid_t)>& from_outside = {}) {
  int ends[2];
  CHECK(pipe(ends) == 0);
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    report_crashes_to(ends[1], witness);
    if (from_outside && ::write(ends[1], "ready\n", 6) != 6) _exit(1);
    body();
    _exit(0);
  }
  close(ends[1]);
  Ended ended;
  char piece[4096];
  for (ssize_t bytes; (bytes = ::read(ends[0], piece, sizeof piece)) != 0;) {
    if (bytes < 0) {
      if (errno == EINTR) continue;
      break;
    }
    ended.words.append(piece, static_cast<size_t>(bytes));
    if (from_outside && ended.words == "ready\n") from_outside(child);
  }
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  ended.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  return ended;
}

bool has(const Ended& ended, const std::string& text) { return ended.words.find(text) != std::string::npos; }

char* forbidden_page() {
  void* page = mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(page != MAP_FAILED);
  return static_cast<char*>(page);
}

void write_to(volatile char* where) { *where = 1; }

int endless(int depth) {
  if (depth == -1) return 0;
  volatile char frame[4096];
  frame[depth % 4096] = static_cast<char>(depth);
  return endless(depth + 1) + frame[0];
}

char* repaired = nullptr;  // a page that the handler of a test makes writable

TEST("a fault is reported with its address and the stack, and still ends the process") {
  char* page = forbidden_page();
  const Ended ended = run_child(nullptr, [&] { write_to(page + 16); });
  char address[32];
  std::snprintf(address, sizeof address, "%p", static_cast<void*>(page + 16));
  CHECK_EQ(ended.signal, SIGSEGV);
  CHECK(has(ended, "{\"crash\":\"SIGSEGV\",\"timeNs\":\""));
  CHECK(has(ended, "\"thread\":\"crash_words_tes\""));  // names of threads have at most 15 characters
  CHECK(has(ended, std::string("\"address\":\"") + address + "\"}\n"));
  CHECK(has(ended, "/crash_words_test("));
}

TEST("an overflow of the stack is reported") {
  const Ended ended = run_child(nullptr, [] { endless(0); });
  CHECK_EQ(ended.signal, SIGSEGV);
  CHECK(has(ended, "\"crash\":\"SIGSEGV\""));
}

TEST("an abort is reported") {
  const Ended ended = run_child(nullptr, [] { std::abort(); });
  CHECK_EQ(ended.signal, SIGABRT);
  CHECK(has(ended, "\"crash\":\"SIGABRT\""));
  CHECK(!has(ended, "\"address\""));
  CHECK(has(ended, "abort"));
}

TEST("a signal of another process names it") {
  const Ended ended = run_child(nullptr, [] { pause(); }, [](pid_t child) { kill(child, SIGBUS); });
  CHECK_EQ(ended.signal, SIGBUS);
  CHECK(has(ended, "\"crash\":\"SIGBUS\""));
  CHECK(has(ended, "\"sender\":" + std::to_string(getpid()) + "}"));
}

TEST("the thread is named") {
  const Ended ended = run_child(nullptr, [] {
    std::thread([] {
      os::name_this_thread("a \"lane\"");
      std::abort();
    }).join();
  });
  CHECK_EQ(ended.signal, SIGABRT);
  CHECK(has(ended, "\"thread\":\"a ?lane?\""));
}

TEST("a second thread that crashes leaves the first one the time to report, although signals interrupt it") {
  static std::atomic<bool> reports;
  reports = false;
  const auto slow = [](int) {
    reports = true;
    usleep(500'000);
  };
  const Ended ended = run_child(slow, [] {
    struct sigaction ignores{};
    ignores.sa_handler = [](int) {};
    sigaction(SIGUSR1, &ignores, nullptr);
    std::thread first([] { std::abort(); });
    while (!reports) std::this_thread::yield();
    std::thread second([] { write_to(forbidden_page()); });
    for (;;) {
      pthread_kill(second.native_handle(), SIGUSR1);
      usleep(1'000);
    }
  });
  CHECK_EQ(ended.signal, SIGABRT);
  CHECK(has(ended, "abort"));  // in the stack
}

TEST("an earlier handler may repair the fault, and then nothing is reported") {
  repaired = forbidden_page();
  struct sigaction mends{};
  mends.sa_handler = [](int) { mprotect(repaired, 4096, PROT_READ | PROT_WRITE); };
  struct sigaction before{};
  sigaction(SIGSEGV, &mends, &before);
  const Ended ended = run_child(nullptr, [] {
    write_to(repaired);
    _exit(repaired[0] == 1 ? 0 : 1);
  });
  sigaction(SIGSEGV, &before, nullptr);
  CHECK_EQ(ended.signal, 0);
  CHECK_EQ(ended.words, std::string());
}

TEST("a crash is reported if an earlier handler gives up by the default action, as Node's does") {
  struct sigaction gives_up{};
  gives_up.sa_handler = [](int number) {
    signal(number, SIG_DFL);
    raise(number);
  };
  struct sigaction before{};
  sigaction(SIGSEGV, &gives_up, &before);
  char* page = forbidden_page();
  const Ended ended = run_child(nullptr, [&] { write_to(page); });
  sigaction(SIGSEGV, &before, nullptr);
  CHECK_EQ(ended.signal, SIGSEGV);
  CHECK(has(ended, "\"crash\":\"SIGSEGV\""));
}

TEST("the last call of each group is reported") {
  coll::FlightRecorder first(2);
  coll::FlightRecorder unused(3);
  coll::FlightRecorder second(4);
  const coll::LastCalls a(first, 2);
  const coll::LastCalls b(unused, 3);
  const coll::LastCalls c(second, 4);
  coll::Op op;
  op.verb = coll::Verb::AllReduce;
  for (op.seq = 0; op.seq < 3000; ++op.seq) {
    const uint32_t index = first.enter(op, "ring");
    first.locate(index, "train.ts:" + std::to_string(op.seq));
    if (op.seq < 2999) first.end(index, true);
  }
  op.verb = coll::Verb::Barrier;
  op.seq = 7;
  second.end(second.enter(op), true);
  const Ended ended = run_child(coll::write_last_calls, [] { std::abort(); });
  CHECK(has(ended, "last call in a group of 2 ranks: allReduce #2999, running, train.ts:2999\n"));
  CHECK(!has(ended, "group of 3"));
  CHECK(has(ended, "last call in a group of 4 ranks: barrier #7, done\n"));
}

}  // namespace

int main() { return run_all(); }
