// The interface between the mapped (virtual) memory of the software device and its other parts.
#pragma once

#include <cstddef>

namespace ringwise::software_gpu {

/// Returns whether these bytes are in one accessible mapping.
bool is_mapped(unsigned long long address, size_t bytes);
/// Returns whether NCCL can use this memory over NVLink once it is registered, according to NCCL's guide: it begins
/// where a mapping begins that contains all of it, with a handle for other processes and a size in multiples of the
/// recommended granularity.
bool is_shareable(const void* data, size_t bytes);

/// Counts bytes of a device as used. Returns false, and counts nothing, if the device does not have enough.
bool take_bytes(int device, size_t bytes);
/// Counts bytes of a device as no longer used.
void return_bytes(int device, size_t bytes);
/// Returns whether there is a device of this number.
bool is_device(int device);

}  // namespace ringwise::software_gpu
