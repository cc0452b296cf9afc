// Runs the blocks of a grid one after the other on the calling thread.
#pragma once

#include "test/software_gpu/language.h"

namespace ringwise::software_gpu {

using Body = void (*)(const void* arguments);

/// Whether all went well: false when the threads of a block (for an exchange: of a warp) did not meet at the same
/// barriers. Without `waits` threads run one by one, and it is false when one meets any.
bool run_grid(Body body, const void* arguments, Dimensions grid, Dimensions block, bool waits);

}  // namespace ringwise::software_gpu
