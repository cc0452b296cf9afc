// Waits for several descriptors, whose set changes rarely, and for a timer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/fd.h"

namespace ringwise::os {

class Poller {
 public:
  /// Throws std::system_error, like the functions that watch.
  Poller();

  /// Ends waits, and lets wait() report `tag`, while `descriptor` can be read or has ended.
  void watch(int descriptor, int64_t tag);
  /// Ends wait_for_all() once after each time that more can be read from `descriptor` or written to it.
  void watch_changes(int descriptor);
  /// Ends watch() of a descriptor, which must still be open.
  void forget(int descriptor) noexcept;
  /// Ends waits once in `ns` nanoseconds, less than a second; replaces an earlier time. Any thread.
  void set_timer(int64_t ns) noexcept;

  /// Waits until there is something to report, the timer or a signal ends the wait, or the time is over; −1 waits
  /// without end. Returns the number of tags that it has set. Several threads may wait.
  size_t wait(std::span<int64_t> tags, int timeout_ms) noexcept;
  /// Waits like wait(), also for the descriptors of watch_changes(). wait() reports afterwards what has ended it. It
  /// may end once more for a timer that has ended another wait.
  void wait_for_all(int timeout_ms) noexcept;

  static constexpr size_t kMost = 32;  // tags of one wait()

 private:
  Fd some_;   // what watch() has added, and the timer
  Fd all_;    // what both have added, and the timer
  Fd timer_;  // where timers are descriptors
};

}  // namespace ringwise::os
