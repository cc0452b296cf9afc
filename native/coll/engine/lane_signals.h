// The signals between the lane of a group, which is its progress thread, and the threads that work in its place. Any
// thread may use every member. The constructor throws std::system_error.
#pragma once

#include <atomic>

#include "base/os/wakeup.h"

namespace ringwise::coll {

struct LaneSignals {
  /// Wakes the lane if it sleeps.
  void wake_lane() {
    if (sleeps.exchange(false)) wake.ring();
  }

  os::Wakeup wake;  // ends the present sleep of the lane or, if it is awake, its next one
  std::atomic<bool> sleeps{false};
  std::atomic<bool> timer_set{false};  // the lane wakes by timer to advance pending operations
  std::atomic<bool> progress_requested{false};
  std::atomic<int> drivers{0};  // threads that pump, or are about to, in the lane's place
  std::atomic<bool> stop{false};
};

}  // namespace ringwise::coll
