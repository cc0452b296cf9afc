// The headers that the kernels need, included before a file switches to another instruction set.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "base/float8.h"
#include "base/half.h"
#include "base/target.h"
#include "coll/reduce/grid.h"
#include "coll/reduce/int8.h"
#include "coll/reduce/reduce.h"

// Put before a loop whose arrays are identical or disjoint; tells the compiler that it may vectorize.
#if defined(__clang__)
#define RINGWISE_SAME_INDEX _Pragma("clang loop vectorize(assume_safety)")
#else
#define RINGWISE_SAME_INDEX _Pragma("GCC ivdep")
#endif
