#include "base/target.h"

#include <cstdint>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace ringwise {

#if defined(__x86_64__) && !defined(RINGWISE_BASELINE_ONLY)

namespace {

// __builtin_cpu_supports() would be shorter, but not every compiler knows all these features, nor has every runtime
// library the table that it reads. Bits as in Intel's manual, volume 2, CPUID.

struct Leaf {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
};

Leaf leaf(unsigned number) {
  Leaf found;
  __get_cpuid_count(number, 0, &found.eax, &found.ebx, &found.ecx, &found.edx);  // zeros for a leaf that there is not
  return found;
}

constexpr bool has_all(uint64_t value, uint64_t bits) { return (value & bits) == bits; }

/// Returns which registers the operating system saves when it switches threads (XCR0).
uint64_t saved_registers() {
  uint32_t low = 0, high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (uint64_t{high} << 32) | low;
}

CpuLevel detect() {
  constexpr unsigned kFma = 1u << 12, kOsXsave = 1u << 27, kAvx = 1u << 28, kF16c = 1u << 29;         // leaf 1, ecx
  constexpr unsigned kAvx2 = 1u << 5, kF = 1u << 16, kDq = 1u << 17, kBw = 1u << 30, kVl = 1u << 31;  // leaf 7, ebx
  constexpr uint64_t kYmm = 0x6, kZmm = 0xe6;                                                         // XCR0
  if (!has_all(leaf(1).ecx, kFma | kOsXsave | kAvx | kF16c)) return CpuLevel::Baseline;
  const unsigned extended = leaf(7).ebx;
  const uint64_t saved = saved_registers();
  if (!has_all(extended, kAvx2) || !has_all(saved, kYmm)) return CpuLevel::Baseline;
  return has_all(extended, kF | kDq | kBw | kVl) && has_all(saved, kZmm) ? CpuLevel::Avx512 : CpuLevel::Avx2;
}

}  // namespace

CpuLevel best_cpu_level() {
  static const CpuLevel level = detect();  // CPUID takes tens of µs on a virtual machine
  return level;
}

#else

CpuLevel best_cpu_level() { return CpuLevel::Baseline; }

#endif

}  // namespace ringwise
