#include "coll/engine/core_sharing.h"

#include <sched.h>

#include "base/time/clock.h"

namespace ringwise::coll {

namespace {

constexpr unsigned kYieldsPerLook = 16;

// After a yield that takes kSharedCoreNs, another thread has used the core. A thread moves at most once per kMoveNs.
constexpr int64_t kSharedCoreNs = 20'000;
constexpr int64_t kMoveNs = 5 * kMillisecond;

/// Moves this thread away from `core`; returns false if its affinity mask allows no other core or the call fails.
bool leave_core(int core) {
  cpu_set_t all, others;
  if (sched_getaffinity(0, sizeof all, &all) != 0) return false;
  others = all;
  CPU_CLR(core, &others);
  if (CPU_COUNT(&others) == 0 || sched_setaffinity(0, sizeof others, &others) != 0) return false;
  sched_setaffinity(0, sizeof all, &all);
  return true;
}

}  // namespace

void CoreSharing::leave_shared_core(const Board& board, int rank) {
  if (++yields_ % kYieldsPerLook != 0) return;
  const int core = sched_getcpu() + 1;
  board.member(rank).core = core;
  for (int other = 0; other < rank; ++other) {
    if (board.member(other).core != core) continue;
    if (!leave_core(core - 1)) return;
    board.member(rank).core = sched_getcpu() + 1;
    return;
  }
}

void CoreSharing::leave_slow_core(int64_t yielded_ns) {
  const int64_t now = now_ns();
  if (now - yielded_ns < kSharedCoreNs) {
    long_yields_ = 0;
    return;
  }
  if (++long_yields_ < 4 || now < next_move_ns_) return;
  next_move_ns_ = now + kMoveNs;
  leave_core(sched_getcpu());
}

}  // namespace ringwise::coll
