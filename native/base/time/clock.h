// The monotonic clock, and units of time in nanoseconds.
#pragma once

#include <chrono>
#include <cstdint>

namespace ringwise {

/// Returns the nanoseconds of the monotonic clock.
inline int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

inline constexpr int64_t kMillisecond = 1'000'000;
inline constexpr int64_t kMicrosecond = 1'000;

}  // namespace ringwise
