// Moves ranks that share a core to different cores. Ranks that wait for each other wake each other, and the scheduler
// may place both on one core. If they then take turns by yielding, the scheduler takes long to separate them, even
// when another core is idle.
#pragma once

#include <cstdint>

#include "coll/shm/board.h"

namespace ringwise::coll {

class CoreSharing {
 public:
  /// Publishes this rank's core on the board and moves this thread to another core if a lower rank uses the same one.
  /// For ranks that share a board. Call it before each yield; it acts at every 16th call.
  void leave_shared_core(const Board& board, int rank);
  /// Moves this thread to another core after several long yields in a row. For ranks without a board, such as
  /// containers on one machine, which notice each other only because yields take long. Call it after a yield that began
  /// at `yielded_ns`.
  void leave_slow_core(int64_t yielded_ns);

 private:
  unsigned yields_ = 0;  // so far
  int long_yields_ = 0;  // in a row
  int64_t next_move_ns_ = 0;
};

}  // namespace ringwise::coll
