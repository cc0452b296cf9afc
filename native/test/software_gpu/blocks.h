// Runs the blocks of a grid one after another on the calling thread.
#pragma once

#include "test/software_gpu/language.h"

namespace ringwise::software_gpu {

using Body = void (*)(const void* arguments);

/// Runs `body` for all threads of all blocks. With `waits`, returns whether all threads of each block (for share():
/// of each warp) reached the same barriers. Without it, threads run one by one, and the result is false if one of them
/// reaches a barrier.
bool run_grid(Body body, const void* arguments, Dimensions grid, Dimensions block, bool waits);

}  // namespace ringwise::software_gpu
