// Instruction sets: detects those of this processor, and compiles a part of a file for one of them.
#pragma once

namespace ringwise {

enum class CpuLevel { Baseline, Avx2, Avx512 };

/// Returns the best level that the processor, the operating system and this build have. A build with
/// RINGWISE_BASELINE_ONLY has only the baseline.
CpuLevel best_cpu_level();

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
