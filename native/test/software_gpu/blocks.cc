// Runs the threads of a block as fibers that switch on the calling thread, or one after another if they never wait.
#include "test/software_gpu/blocks.h"

#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

thread_local ringwise::software_gpu::Dimensions threadIdx, blockIdx, blockDim, gridDim;

namespace ringwise::software_gpu {

namespace {

constexpr size_t kStackBytes = 256 << 10, kWarp = 32;

/// A stack with a guard page below it, so that an overflow crashes instead of writing to another stack.
class Stack {
 public:
  Stack() : page_(static_cast<size_t>(sysconf(_SC_PAGESIZE))) {
    void* base = mmap(nullptr, page_ + kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED) throw std::bad_alloc();
    base_ = static_cast<char*>(base);
    mprotect(base_, page_, PROT_NONE);
  }
  ~Stack() {
#if defined(__SANITIZE_ADDRESS__)
    __asan_unpoison_memory_region(base_, page_ + kStackBytes);  // frames of abandoned fibers have poisoned it
#endif
    munmap(base_, page_ + kStackBytes);
  }
  Stack(const Stack&) = delete;
  Stack& operator=(const Stack&) = delete;
  char* begin() const { return base_ + page_; }

 private:
  size_t page_;
  char* base_;
};

enum class State { Ready, AtWarp, AtBlock, Done };

struct Fiber {
  ucontext_t context;  // where the fiber starts
  void* place[5];      // where the fiber continues
  Stack stack;
  bool is_started = false;
  State state = State::Ready;
};

/// The values that the threads of a warp share. There are two sets, because the fastest thread may be one call of
/// share() ahead.
struct Shared {
  char values[2][kWarp][kSharedBytes];
};

/// A copy that a thread has started.
struct Copy {
  void* to;
  const void* from;
  size_t bytes;
};

struct Block {
  Body body = nullptr;
  const void* arguments = nullptr;
  bool waits = false;
  std::vector<Fiber> fibers;  // kept for later blocks
  std::vector<Shared> shared;
  std::vector<unsigned> turns;            // calls of share() by each thread
  std::vector<std::vector<Copy>> copies;  // of each thread, not yet run
  void* scheduler[5];                     // where the scheduler continues
  size_t current = 0, threads = 0;
  const void* scheduler_stack = nullptr;
  size_t scheduler_bytes = 0;
};
thread_local Block block;

/// Thrown when a thread waits in a kernel that is declared without waits.
struct Undeclared {};

// The address sanitizer must be told of every change of the stack.
void before_switch([[maybe_unused]] void** save, [[maybe_unused]] const void* stack, [[maybe_unused]] size_t bytes) {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(save, stack, bytes);
#endif
}
void after_switch([[maybe_unused]] void* save, [[maybe_unused]] bool is_fiber) {
#if defined(__SANITIZE_ADDRESS__)
  if (is_fiber)
    __sanitizer_finish_switch_fiber(save, &block.scheduler_stack, &block.scheduler_bytes);
  else
    __sanitizer_finish_switch_fiber(save, nullptr, nullptr);
#endif
}

// Switches by the compiler's own jumps, because swapcontext would ask the system for the signal mask each time. noipa
// keeps callers from learning which registers these functions preserve, because the code that runs in between preserves
// none. The block of this thread is passed as an argument, because finding thread-local memory of a library takes a
// call.
[[noreturn, gnu::noipa]] void jump(void** place) { __builtin_longjmp(place, 1); }

[[gnu::noipa]] void to_scheduler(Block& own, State state) {
  Fiber& fiber = own.fibers[own.current];
  fiber.state = state;
  void* save = nullptr;
  before_switch(&save, own.scheduler_stack, own.scheduler_bytes);
  if (__builtin_setjmp(fiber.place) == 0) jump(own.scheduler);
  after_switch(save, true);
}

/// Runs one thread of each block on this fiber, block after block. Never returns; switches to the scheduler instead.
void run_fiber() {
  after_switch(nullptr, true);
  Block& own = block;
  for (;;) {
    own.body(own.arguments);
    to_scheduler(own, State::Done);
  }
}

[[gnu::noipa]] void resume(Block& own, Fiber& fiber) {
  void* save = nullptr;
  before_switch(&save, fiber.stack.begin(), kStackBytes);
  if (__builtin_setjmp(own.scheduler) == 0) {
    if (fiber.is_started) jump(fiber.place);
    fiber.is_started = true;
    setcontext(&fiber.context);
  }
  after_switch(save, false);
}

void start(size_t threads) {
  if (block.fibers.size() < threads) {
    block.fibers = std::vector<Fiber>(threads);
    for (Fiber& fiber : block.fibers) {
      getcontext(&fiber.context);
      fiber.context.uc_stack.ss_sp = fiber.stack.begin();
      fiber.context.uc_stack.ss_size = kStackBytes;
      fiber.context.uc_link = nullptr;
      makecontext(&fiber.context, &run_fiber, 0);
    }
  }
  block.threads = threads;
  block.shared.resize((threads + kWarp - 1) / kWarp);
  block.turns.assign(threads, 0);
  block.copies.resize(std::max(block.copies.size(), threads));
  for (auto& copies : block.copies) copies.clear();
  for (size_t i = 0; i < threads; i++) block.fibers[i].state = State::Ready;
}

/// Lets the threads of a warp run until none can go on without other warps.
void run_warp(Block& own, size_t begin, size_t end) {
  auto& index = threadIdx;
  for (;;) {
    size_t waiting = 0;
    for (size_t i = begin; i < end; i++) {
      Fiber& fiber = own.fibers[i];
      if (fiber.state == State::Ready) {
        own.current = i;
        index = {static_cast<unsigned>(i), 0, 0};
        resume(own, fiber);
      }
      waiting += fiber.state == State::AtWarp;
    }
    if (waiting < end - begin) return;
    for (size_t i = begin; i < end; i++) own.fibers[i].state = State::Ready;
  }
}

/// Lets every thread run to its next barrier, again and again until all have ended. Returns false if the threads do not
/// reach the same barriers.
bool run_waiting(size_t threads) {
  start(threads);
  for (;;) {
    for (size_t begin = 0; begin < threads; begin += kWarp) run_warp(block, begin, std::min(begin + kWarp, threads));
    size_t done = 0, waiting = 0;
    for (size_t i = 0; i < threads; i++) {
      done += block.fibers[i].state == State::Done;
      waiting += block.fibers[i].state == State::AtBlock;
    }
    if (done == threads) return true;
    if (waiting < threads) {
      block.fibers.clear();  // some threads have ended or wait elsewhere, so the others would wait forever
      return false;
    }
    for (size_t i = 0; i < threads; i++) block.fibers[i].state = State::Ready;
  }
}

bool run_block(size_t threads) {
  if (block.waits) return run_waiting(threads);
  for (unsigned i = 0; i < threads; i++) {
    threadIdx = {i, 0, 0};
    block.body(block.arguments);
  }
  return true;
}

}  // namespace

void barrier() {
  if (!block.waits) throw Undeclared{};
  to_scheduler(block, State::AtBlock);
}

const char* share(const void* value, size_t bytes) {
  Block& own = block;
  if (!own.waits) throw Undeclared{};
  auto& values = own.shared[own.current / kWarp].values[own.turns[own.current]++ % 2];
  std::memcpy(values[own.current % kWarp], value, bytes);
  to_scheduler(own, State::AtWarp);
  return values[0];
}

void copy_later(void* to, const void* from, size_t bytes) {
  if (!block.waits) throw Undeclared{};
  block.copies[block.current].push_back({to, from, bytes});
}
void await_copies() {
  auto& copies = block.copies[block.current];
  for (const Copy& copy : copies) {
    std::memset(copy.to, 0, 16);
    std::memcpy(copy.to, copy.from, copy.bytes);
  }
  copies.clear();
}

bool run_grid(Body body, const void* arguments, Dimensions grid, Dimensions size, bool waits) try {
  block.body = body;
  block.arguments = arguments;
  block.waits = waits;
  gridDim = grid;
  blockDim = size;
  for (unsigned z = 0; z < grid.z; z++) {
    for (unsigned y = 0; y < grid.y; y++) {
      for (unsigned x = 0; x < grid.x; x++) {
        blockIdx = {x, y, z};
        if (!run_block(size.x)) return false;
      }
    }
  }
  return true;
} catch (const Undeclared&) {
  return false;
}

}  // namespace ringwise::software_gpu
