#include "base/time/tick_clock.h"

#include <fstream>
#include <limits>
#include <string>

namespace ringwise {

namespace {

/// Returns whether the kernel uses the processor's counter as its clock source, so that it runs evenly and equally on
/// all cores.
bool kernel_trusts_counter() {
  std::ifstream file("/sys/devices/system/clocksource/clocksource0/current_clocksource");
  std::string source;
  return file >> source && (source == "tsc" || source == "arch_sys_counter");
}

}  // namespace

TickClock::TickClock() : by_counter_(kernel_trusts_counter()), begin_(moment()) {}

/// Reads both clocks at the same moment: the best of a few tries, in which the least time passed between the readings.
TickClock::Moment TickClock::moment() const {
  Moment best{};
  int64_t least = std::numeric_limits<int64_t>::max();
  for (int i = 0; i < 5; ++i) {
    const int64_t before = now(), ns = now_ns(), after = now();
    if (after - before >= least) continue;
    least = after - before;
    best = {before + (after - before) / 2, ns};
  }
  return best;
}

TickClock::Scale TickClock::scale() const {
  const Moment end = moment();
  Scale scale;
  scale.ticks_ = end.ticks;
  scale.ns_ = end.ns;
  if (by_counter_ && end.ticks > begin_.ticks && end.ns > begin_.ns) {
    scale.ns_per_tick_ = static_cast<double>(end.ns - begin_.ns) / static_cast<double>(end.ticks - begin_.ticks);
  }
  return scale;
}

}  // namespace ringwise
