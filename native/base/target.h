// Instruction sets: detects those of this processor, and compiles a part of a file for one of them.
#pragma once

namespace ringwise {

enum class CpuLevel { Baseline, Avx2, Avx512 };

/// Returns the best level that both the processor and this build have. A build with RINGWISE_BASELINE_ONLY has only the
/// baseline.
inline CpuLevel best_cpu_level() {
#if defined(__x86_64__) && !defined(RINGWISE_BASELINE_ONLY)
  __builtin_cpu_init();
  const bool has_avx2 =
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
  const bool has_avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (has_avx2 && has_avx512) return CpuLevel::Avx512;
  if (has_avx2) return CpuLevel::Avx2;
#endif
  return CpuLevel::Baseline;
}

}  // namespace ringwise

// Code between BEGIN and END is compiled for `isa`. Include library headers before BEGIN.
#define RINGWISE_PRAGMA(text) _Pragma(#text)
#if defined(__clang__)
#define RINGWISE_TARGET_BEGIN(isa) \
  RINGWISE_PRAGMA(clang attribute push(__attribute__((target(isa))), apply_to = function))
#define RINGWISE_TARGET_END _Pragma("clang attribute pop")
#else
#define RINGWISE_TARGET_BEGIN(isa) _Pragma("GCC push_options") RINGWISE_PRAGMA(GCC target(isa))
#define RINGWISE_TARGET_END _Pragma("GCC pop_options")
#endif
