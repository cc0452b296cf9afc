// Flags of descriptors, for systems whose calls cannot set them while they make a descriptor. A process that another
// thread starts in between inherits the descriptor.
#pragma once

namespace ringwise::os {

/// Makes a descriptor non-blocking, and closed in programs that this process starts. Returns false, with errno set, if
/// that fails.
bool set_descriptor_flags(int descriptor) noexcept;

}  // namespace ringwise::os
