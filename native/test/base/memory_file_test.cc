// Tests memory files while signals interrupt the thread that makes them. New kernels pass without our help.
#include "base/memory_file.h"

#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <thread>

#include "coll/shm/arena.h"
#include "test/check.h"

using namespace ringwise;

namespace {

std::atomic<long> handled{0};

/// Sends SIGUSR2 to the thread that made it, without pause.
class Signals {
 public:
  Signals() {
    struct sigaction action{};
    action.sa_handler = [](int) { ++handled; };
    sigaction(SIGUSR2, &action, nullptr);
    thread_ = std::thread([this, target = pthread_self()] {
      while (!stop_) pthread_kill(target, SIGUSR2);
    });
    while (handled == 0) std::this_thread::yield();
  }
  ~Signals() {
    stop_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace

TEST("pages are reserved while signals arrive faster than that") {
  constexpr size_t kBytes = size_t{64} << 20;
  const Signals signals;
  const long before = handled;
  CHECK(make_memory_file("test", kBytes));
  if (const auto arena = coll::Arena::create()) arena->release(arena->allocate(kBytes));
  CHECK(handled > before);
}

int main() { return ringwise::test::run_all(); }
