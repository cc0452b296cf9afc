// A clock for events that happen millions of times a second: reading it takes a few nanoseconds, the monotonic clock
// some tens. Its ticks are those of the processor's counter if the kernel uses that as its clock, otherwise
// nanoseconds.
#pragma once

#include <cstdint>

#include "base/time/clock.h"

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace ringwise {

class TickClock {
 public:
  TickClock();

  int64_t now() const { return by_counter_ ? counter() : now_ns(); }

  /// Converts ticks to nanoseconds of the monotonic clock and back, with the rate known when scale() was called. Keeps
  /// the order of moments.
  class Scale {
   public:
    int64_t ns_of(int64_t ticks) const {
      return ns_ + static_cast<int64_t>(static_cast<double>(ticks - ticks_) * ns_per_tick_);
    }
    int64_t ticks_of(int64_t ns) const {
      return ticks_ + static_cast<int64_t>(static_cast<double>(ns - ns_) / ns_per_tick_);
    }

   private:
    friend class TickClock;
    int64_t ticks_ = 0;
    int64_t ns_ = 0;
    double ns_per_tick_ = 1;
  };
  Scale scale() const;

 private:
  struct Moment {
    int64_t ticks;
    int64_t ns;
  };
  static int64_t counter() {
#if defined(__x86_64__)
    return static_cast<int64_t>(__rdtsc());
#elif defined(__aarch64__)
    int64_t ticks;
    asm volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#else
    return now_ns();
#endif
  }
  Moment moment() const;

  bool by_counter_;
  Moment begin_;
};

}  // namespace ringwise
