// The arithmetic of the software libnccl on arrays of each ncclDataType_t. Speed does not matter here.
#pragma once

#include <cstddef>

namespace ringwise::software_gpu {

/// Bytes of an element, by ncclDataType_t.
constexpr size_t kBytes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};

/// Reduces `from` into `into`, element by element. `op` is 1 for products, 2 for the greatest, 3 for the least element,
/// and anything else for sums.
void fold(char* into, const char* from, size_t count, int type, int op);

/// Multiplies all elements of `data` by `factor`. Does nothing for integers.
void scale(char* data, size_t count, int type, double factor);

/// Returns how many elements of a single rank NCCL 2.28 multiplies: its blocks leave the last ones out if they do not
/// divide the array evenly. `element` is the bytes of one.
size_t multiplied_alone(size_t count, size_t element);

}  // namespace ringwise::software_gpu
