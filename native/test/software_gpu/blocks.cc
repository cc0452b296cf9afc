#include "test/software_gpu/blocks.h"

#include <ucontext.h>

#include <cstdlib>
#include <memory>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

thread_local ringwise::software_gpu::Dimensions threadIdx, blockIdx, blockDim, gridDim;

namespace ringwise::software_gpu {

namespace {

constexpr size_t kStackBytes = 128 << 10;

struct Fiber {
  ucontext_t context;  // where it starts
  void* place[5];      // where it goes on
  std::unique_ptr<char[]> stack{new char[kStackBytes]};
  bool is_started = false, is_done = false;
};

struct Block {
  Body body = nullptr;
  const void* arguments = nullptr;
  bool waits = false;
  std::vector<Fiber> fibers;  // live from block to block
  void* scheduler[5];         // where the scheduler goes on
  size_t current = 0;
  const void* scheduler_stack = nullptr;
  size_t scheduler_bytes = 0;
};
thread_local Block block;

// The address sanitizer must be told whenever the stack changes.
void before_switch([[maybe_unused]] void** save, [[maybe_unused]] const void* stack, [[maybe_unused]] size_t bytes) {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(save, stack, bytes);
#endif
}
void after_switch([[maybe_unused]] void* save, [[maybe_unused]] bool is_fiber) {
#if defined(__SANITIZE_ADDRESS__)
  if (is_fiber) __sanitizer_finish_switch_fiber(save, &block.scheduler_stack, &block.scheduler_bytes);
  else __sanitizer_finish_switch_fiber(save, nullptr, nullptr);
#endif
}

// Switches by the compiler's own jumps: swapcontext would ask the system for the signal mask each time.
[[noreturn, gnu::noinline]] void jump(void** place) { __builtin_longjmp(place, 1); }

[[gnu::noinline]] void to_scheduler(bool is_done) {
  Fiber& fiber = block.fibers[block.current];
  fiber.is_done = is_done;
  void* save = nullptr;
  before_switch(&save, block.scheduler_stack, block.scheduler_bytes);
  if (__builtin_setjmp(fiber.place) == 0) jump(block.scheduler);
  after_switch(save, true);
}

/// A fiber runs its thread of one block after the other.
void run_fiber() {
  after_switch(nullptr, true);
  for (;;) {
    block.body(block.arguments);
    to_scheduler(true);
  }
}

[[gnu::noinline]] void resume(Fiber& fiber) {
  void* save = nullptr;
  before_switch(&save, fiber.stack.get(), kStackBytes);
  if (__builtin_setjmp(block.scheduler) == 0) {
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
      fiber.context.uc_stack.ss_sp = fiber.stack.get();
      fiber.context.uc_stack.ss_size = kStackBytes;
      fiber.context.uc_link = nullptr;
      makecontext(&fiber.context, &run_fiber, 0);
    }
  }
  for (size_t i = 0; i < threads; i++) block.fibers[i].is_done = false;
}

/// Lets every thread run to its next barrier, again and again until all have ended.
bool run_waiting(size_t threads) {
  start(threads);
  for (;;) {
    size_t done = 0;
    for (size_t i = 0; i < threads; i++) {
      block.current = i;
      threadIdx = {static_cast<unsigned>(i), 0, 0};
      resume(block.fibers[i]);
      done += block.fibers[i].is_done;
    }
    if (done == threads) return true;
    if (done == 0) continue;
    block.fibers.clear();  // some have ended, and others wait for them in vain
    return false;
  }
}

}  // namespace

void barrier() {
  if (!block.waits) std::abort();  // a kernel that waits must be declared as one
  to_scheduler(false);
}

bool run_grid(Body body, const void* arguments, Dimensions grid, Dimensions size, bool waits) {
  block.body = body;
  block.arguments = arguments;
  block.waits = waits;
  gridDim = grid;
  blockDim = size;
  for (unsigned z = 0; z < grid.z; z++) {
    for (unsigned y = 0; y < grid.y; y++) {
      for (unsigned x = 0; x < grid.x; x++) {
        blockIdx = {x, y, z};
        if (waits) {
          if (!run_waiting(size.x)) return false;
          continue;
        }
        for (unsigned i = 0; i < size.x; i++) {
          threadIdx = {i, 0, 0};
          body(arguments);
        }
      }
    }
  }
  return true;
}

}  // namespace ringwise::software_gpu
