// Memory of the software device that is mapped: what the rest of the device asks of it, and it of the rest.
#pragma once

#include <cstddef>

namespace ringwise::software_gpu {

/// Whether these bytes lie in one mapping that may be accessed.
bool is_mapped(unsigned long long address, size_t bytes);
/// Whether NCCL's guide lets registered memory of this place be used over NVLink: it begins where a mapping that has
/// all of it does, with a handle for other processes, in multiples of what the driver recommends.
bool is_shareable(const void* data, size_t bytes);

/// Takes bytes of a device, or gives them back. False: it has not as many.
bool take_bytes(int device, size_t bytes);
void return_bytes(int device, size_t bytes);
bool is_device(int device);

}  // namespace ringwise::software_gpu
