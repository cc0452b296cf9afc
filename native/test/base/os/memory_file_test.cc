// Tests memory files while signals interrupt the thread that makes them. New kernels pass without our help.
#include "base/os/memory_file.h"

#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <limits>
#include <thread>
#include <vector>

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
  CHECK(os::make_memory_file("test", kBytes));
  if (const auto arena = coll::Arena::create()) arena->release(arena->allocate(kBytes));
  CHECK(handled > before);
}

TEST("pages that are made private keep their contents, and what others write does not reach them") {
  constexpr size_t kPage = 4096, kBytes = 4 * kPage;
  const Fd file = os::make_memory_file("test", kBytes);
  std::byte* const mine = os::map_memory_file(file, kBytes);
  std::byte* const theirs = os::map_memory_file(file, kBytes);
  for (size_t page = 0; page < 4; ++page) mine[page * kPage] = std::byte{1};
  CHECK_EQ(os::make_private(mine + kPage, 2 * kPage), 0);
  for (size_t page = 0; page < 4; ++page) theirs[page * kPage] = std::byte{2};
  for (size_t page = 0; page < 4; ++page) CHECK(mine[page * kPage] == std::byte(page == 1 || page == 2 ? 1 : 2));
  os::drop_private(mine + kPage, 2 * kPage);
  CHECK(mine[kPage] == std::byte{0} && mine[2 * kPage] == std::byte{0} && theirs[kPage] == std::byte{2});
  os::unmap(mine, kBytes);
  os::unmap(theirs, kBytes);
}

TEST("memory of an arena that is released and allocated again is zeroed, for all who map it") {
  constexpr size_t kBytes = size_t{1} << 20;
  const auto arena = coll::Arena::create();
  CHECK(arena);
  if (!arena) return;
  coll::PeerArenas peers(1);
  peers.attach(0, Fd(dup(arena->descriptor())));
  std::byte* const first = arena->allocate(kBytes);
  const size_t offset = *arena->offset_of(first, kBytes);
  first[kBytes - 1] = std::byte{7};
  CHECK(peers.memory(0)[offset + kBytes - 1] == std::byte{7});
  arena->release(first);
  std::byte* const second = arena->allocate(kBytes);
  CHECK(second == first);
  CHECK(second[kBytes - 1] == std::byte{0} && peers.memory(0)[offset + kBytes - 1] == std::byte{0});
}

TEST("large blocks of an arena begin at huge pages, and small ones fill the gaps") {
  constexpr size_t kHuge = size_t{2} << 20;
  const auto arena = coll::Arena::create();
  CHECK(arena);
  if (!arena) return;
  std::byte* const small = arena->allocate(1);
  std::byte* const large = arena->allocate(kHuge + 1);
  std::byte* const other = arena->allocate(4096);
  CHECK(*arena->offset_of(small, 1) == 0);
  CHECK(*arena->offset_of(large, kHuge + 1) == kHuge);
  CHECK(*arena->offset_of(other, 1) == 4096);
  for (size_t i = 0; i <= kHuge; i += 512) CHECK(large[i] == std::byte{0});
  large[kHuge] = std::byte{1};
  arena->release(large);
  arena->release(small);
  arena->release(other);
  // All is one free range again.
  CHECK(*arena->offset_of(arena->allocate(3 * kHuge), 1) == 0);
}

namespace {

/// Whether an arena gives the pages of released blocks back to the system. On macOS it keeps them.
#ifdef RINGWISE_PORTABLE
constexpr bool kReturnsPages = false;
#else
constexpr bool kReturnsPages = true;
#endif

/// Returns the number of bytes of physical memory that the arena has.
size_t reserved(const coll::Arena& arena) {
  struct stat status{};
  fstat(arena.descriptor(), &status);
  return static_cast<size_t>(status.st_blocks) * 512;
}

}  // namespace

TEST("an arena that was prepared is the next one that is made, and has its pages already") {
  constexpr size_t kBytes = size_t{8} << 20;
  coll::Arena::prepare(kBytes);
  const auto first = coll::Arena::create();
  const auto second = coll::Arena::create();
  CHECK(first && second);
  if (!first || !second) return;
  CHECK(reserved(*first) == kBytes && reserved(*second) == 0);
  std::byte* const block = first->allocate(kBytes);
  CHECK(reserved(*first) == kBytes);
  for (size_t i = 0; i < kBytes; i += 512) CHECK(block[i] == std::byte{0});
  first->release(block);
  CHECK(reserved(*first) == (kReturnsPages ? 0 : kBytes));
  CHECK(first->allocate(kBytes) == block);
  CHECK(reserved(*first) == kBytes);
}

TEST("an arena that was prepared is dropped or replaced if no group takes it") {
  coll::Arena::prepare(size_t{4} << 20);
  coll::Arena::prepare(4096);
  coll::Arena::prepare(std::numeric_limits<size_t>::max());  // more than any host has
  const auto none = coll::Arena::create();
  CHECK(none && reserved(*none) == 0);
  coll::Arena::prepare(4096);
  coll::Arena::prepare(0);
  const auto after = coll::Arena::create();
  CHECK(after && reserved(*after) == 0);
}

TEST("of several threads that prepare an arena at once, one succeeds") {
  std::vector<std::thread> threads;
  for (size_t i = 1; i <= 8; ++i) threads.emplace_back([i] { coll::Arena::prepare(i << 20); });
  for (std::thread& thread : threads) thread.join();
  const auto arena = coll::Arena::create();
  CHECK(arena && reserved(*arena) >= size_t{1} << 20 && reserved(*arena) <= size_t{8} << 20);
  const auto next = coll::Arena::create();
  CHECK(next && reserved(*next) == 0);
}

int main() { return ringwise::test::run_all(); }
