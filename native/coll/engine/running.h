// The collective that a group runs at present: over the links, or on the board that all ranks of one host share.
#pragma once

#include <vector>

#include "base/time/clock.h"
#include "coll/engine/execution.h"
#include "coll/shm/board_execution.h"

namespace ringwise::coll {

/// Used only by the thread that owns the engine.
struct Running {
  Execution over_links;
  BoardExecution* on_board = nullptr;  // null for an operation over links
  bool active = false;
  bool inline_run = false;  // run by a blocking call, which gets the result from inline_result(), not as an `Ended`

  /// Tells the other ranks that the operation has begun here. On the board, this moves only the data that fits the
  /// post; over links, it moves the data that the links accept at once.
  void announce(Links& links) {
    if (on_board != nullptr)
      on_board->announce();
    else
      over_links.advance(links);
  }
  /// Sets the deadline if it has not been set.
  void start_clock() {
    if (op().deadline_ns == 0) op().deadline_ns = now_ns() + op().timeout_ns;
  }
  bool advance(Links& links) { return on_board != nullptr ? on_board->advance() : over_links.advance(links); }
  bool done() const { return on_board != nullptr ? on_board->done() : over_links.done(); }
  const char* algorithm() const { return on_board != nullptr ? on_board->algorithm() : over_links.algorithm(); }
  Op& op() { return on_board != nullptr ? on_board->op() : over_links.op(); }
  const Op& op() const { return on_board != nullptr ? on_board->op() : over_links.op(); }
  const Signature& signature() const { return on_board != nullptr ? on_board->signature() : over_links.signature(); }
  void waiting_for(std::vector<int>& ranks) const {
    if (on_board != nullptr)
      on_board->waiting_for(ranks);
    else
      over_links.waiting_for(ranks);
  }
};

}  // namespace ringwise::coll
