#include "coll/engine/core_sharing.h"

#include "base/os/cores.h"
#include "base/time/clock.h"

namespace ringwise::coll {

namespace {

constexpr unsigned kYieldsPerLook = 16;

// After a yield that takes kSharedCoreNs, another thread has used the core. A thread moves at most once per kMoveNs.
constexpr int64_t kSharedCoreNs = 20'000;
constexpr int64_t kMoveNs = 5 * kMillisecond;

}  // namespace

void CoreSharing::leave_shared_core(const Board& board, int rank) {
  if (++yields_ % kYieldsPerLook != 0) return;
  const int core = os::current_core() + 1;
  if (core == 0) return;  // not known
  board.member(rank).core = core;
  for (int other = 0; other < rank; ++other) {
    if (board.member(other).core != core) continue;
    if (!os::leave_core(core - 1)) return;
    board.member(rank).core = os::current_core() + 1;
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
  os::leave_core(os::current_core());
}

}  // namespace ringwise::coll
