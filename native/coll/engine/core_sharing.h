// Ranks that meet wake each other, and so may find themselves on one core. Where they take turns by yielding, the
// scheduler sees two busy threads and an idle core, and takes a long time to part them.
#pragma once

#include <cstdint>

#include "coll/shm/board.h"

namespace ringwise::coll {

class CoreSharing {
 public:
  /// For ranks that share memory, before a yield: says where this one runs, and the higher of two on one core moves.
  void part(const Board& board, int rank);
  /// For ranks that do not, as in containers of one machine, after a yield that began at `yielded_ns`: all they see
  /// of each other is that a yield takes long.
  void part_from_others(int64_t yielded_ns);

 private:
  unsigned yields_ = 0;  // so far
  int long_yields_ = 0;  // in a row
  int64_t next_move_ns_ = 0;
};

}  // namespace ringwise::coll
