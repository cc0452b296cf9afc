// What the kernels use of the libraries, and how a file is switched to another instruction set.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "tensor/cpu/levels.h"

// Everything between BEGIN and END is compiled for `isa`.
#define RINGWISE_PRAGMA(text) _Pragma(#text)
#if defined(__clang__)
#define RINGWISE_TARGET_BEGIN(isa) \
  RINGWISE_PRAGMA(clang attribute push(__attribute__((target(isa))), apply_to = function))
#define RINGWISE_TARGET_END _Pragma("clang attribute pop")
#else
#define RINGWISE_TARGET_BEGIN(isa) _Pragma("GCC push_options") RINGWISE_PRAGMA(GCC target(isa))
#define RINGWISE_TARGET_END _Pragma("GCC pop_options")
#endif
